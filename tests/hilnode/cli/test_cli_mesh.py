"""`hilnode mesh`: what a file holds, or why it cannot be used."""

import trimesh
from typer.testing import CliRunner

from hilnode.cli.main import app


def ask(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["mesh", *map(str, arguments)], env={"COLUMNS": "200"})
    return done.exit_code, done.output


def test_a_box_in_millimetres(tmp_path):
    trimesh.creation.box(extents=(2000, 1000, 500)).export(tmp_path / "box.stl")
    code, said = ask(tmp_path / "box.stl", "--scale", "0.001", "--density", "1000")
    assert code == 0
    assert "12 triangles, 8 vertices, 2  1  0.5 m" in said
    assert "mass     1000 kg at 1000 kg/m^3, volume 1 m^3" in said
    assert "104.167" in said  # 1000 (1^2 + 0.5^2) / 12


def test_a_file_with_a_hole_is_refused_unless_it_is_ground(tmp_path):
    box = trimesh.creation.box()
    trimesh.Trimesh(box.vertices, box.faces[1:], process=False).export(tmp_path / "holed.stl")
    code, said = ask(tmp_path / "holed.stl")
    assert code == 1
    assert "holed.stl: triangle" in said
    assert "close the holes" in said
    code, said = ask(tmp_path / "holed.stl", "--open")
    assert code == 0
    assert "an open surface has no mass" in said


def test_a_file_that_is_not_there(tmp_path):
    code, said = ask(tmp_path / "none.stl")
    assert code == 1
    assert "there is no such file" in said
