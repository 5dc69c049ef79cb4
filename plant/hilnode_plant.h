/* The plant ABI for C, C++, Rust and FMU wrappers. See plant/abi.py. */
#ifndef HILNODE_PLANT_H
#define HILNODE_PLANT_H
#include <stdint.h>

/* self    whatever the plant gave as its own pointer
   step    plant steps done so far, from 0
   params  parameters, in the order the plant declares them
   inputs  inputs, in the order the plant declares them
   outputs written on every call
   poses   written on every call: 7 numbers per body, position [m] then quaternion w x y z
   returns 0 when all is well; anything else trips the node in this tick.
   Must not block, allocate, or take locks. `reset` has the same shape. */
typedef int64_t (*hilnode_step)(void *self, int64_t step, const double *params,
                                const double *inputs, double *outputs, double *poses);

enum { HILNODE_OK = 0, HILNODE_NOT_FINITE = 1, HILNODE_DIVERGED = 2, HILNODE_SOLVER_FAILED = 3 };
#endif
