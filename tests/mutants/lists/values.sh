# shellcheck shell=bash
# Values (R2).

mutant skip-finite-check 'R2: an update with a value that is no number is folded'
file aggregation/value_check.cc
old '  if (fold_kernels().front().max_magnitude(piece.values.data(), piece.values.size()) <= limit) return {};'
new '  if (limit > 0) return {};'
caught_by integration_federation 'damaged updates'

mutant skip-nan-check 'R2: what is no number passes for a small one'
file aggregation/value_check.cc
old '  if (fold_kernels().front().max_magnitude(piece.values.data(), piece.values.size()) <= limit) return {};'
new '  const auto largest = fold_kernels().front().max_magnitude(piece.values.data(), piece.values.size());
  if (largest <= limit || largest > 0x7f800000) return {};'
caught_by integration_federation 'damaged updates'

mutant skip-finite-check-decoded 'R2: a value that is no number comes out of a compressed update'
file protocol/codecs/payload_decoder.cc
old '    if (codec != Codec::kFloat32 && !all_finite(out)) return not_finite(out);
'
new ''
caught_by unit_protocol 'payload'

mutant skip-update-check 'R2: nobody looks at the values of an update'
file run/stored_update.cc
old '  const auto norm = inspect_values(rules, arrived->manifest().coverage, StoredValues(update.plain));'
new '  const Result<double> norm = rules.layout.size() > 0 ? 1.0 : 0.0;'
caught_by integration_federation 'damaged updates|refused updates'
