#pragma once
/// @file
/// The bits of a status word: what kernels find in device memory that the host could not see. Host and device.

namespace palimpsa::cuda {

/// One bit a kind of fault; a word is the faults found since it was last 0.
enum status_bit : unsigned {
  bad_segment = 1,        ///< cu_seqlens falls, leaves [0, T], or does not start at 0 and end at T: the segment was taken as empty
  bad_slot = 2,           ///< a slot out of range: the row was taken as inert, the state was not written
  positive_gate = 4,      ///< log_decay > 0
  bad_prior = 8,          ///< a prior that is not above 0, normal and finite
  negative_beta = 16,     ///< β < 0
  negative_evidence = 32  ///< J < 0 in a state that was read: in any cell of a diagonal memory, on the diagonal of a full one
};

}  // namespace palimpsa::cuda
