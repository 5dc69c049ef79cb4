"""Soil that is dug, carried, dropped and heaped: height fields that change, and the forces on the bucket.

    ground = build_ground(scene, [terrain, bed, scenery, spare])                # ground.py: shapes of the scene
    soil = build_soil(                                                          # build.py
        scene, ground, SoilKind(), bucket, soil=[0], beds=[1], reserve=[3], pipes=[Pipe(...)], com=(0.1, 0.0, 0.4)
    )

and in the tick, with `soil`, `ground` and `field` looked at through a record:

    status = soil_step(soil, ground, field, pos, rot, vel, h, wrench)           # step.py: the stages in their order

What it tells is in `soil.state.out` (named in `model.OUT`) and `soil.state.counter`; pipes have `soil.pipe.struck`.
"""
