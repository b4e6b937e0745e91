#pragma once
/// @file
/// palimpsa: attention with a fixed-size memory as Bayesian inference. This header reads as the table of contents.

// The recurrence, and what it is made of.
#include "palimpsa/recurrence.hpp"  // THE recurrence: forget, write, read
#include "palimpsa/rule.hpp"        // a rule = a point on five axes
#include "palimpsa/elementwise.hpp" // what the body of a policy of your own may say
#include "palimpsa/traits.hpp"      // the algebra that follows from the point

// Named points.
#include "palimpsa/instances/delta_net.hpp"
#include "palimpsa/instances/diagonal_kalman.hpp"
#include "palimpsa/instances/longhorn.hpp"
#include "palimpsa/instances/mamba2.hpp"
#include "palimpsa/instances/mesa_net.hpp"
#include "palimpsa/instances/palimpsa.hpp"

// What a caller holds.
#include "palimpsa/arguments.hpp"      // the tensors of a call
#include "palimpsa/execution.hpp"      // which algorithm, whose memory
#include "palimpsa/state.hpp"          // its states as mean and importance
#include "palimpsa/storage_eigen.hpp"  // bfloat16 and half as storage

// What a caller calls.
#include "palimpsa/scan.hpp"          // a sequence
#include "palimpsa/scan_chunked.hpp"  // the same, in chunks of tokens
#include "palimpsa/scan_backward.hpp"  // its gradients
#include "palimpsa/step.hpp"          // a token, states in a pool
