#include "run/privacy/private_update.h"

#include <cmath>

#include "aggregation/accumulator.h"
#include "core/aligned_buffer.h"
#include "privacy/differential/noise.h"

namespace fedge::run {
namespace {

// Standard deviation in grid units at which the grid is chosen, before rounding of the values is counted.
// Rounding adds so little that the sampler still supports the total.
constexpr double kFinestLocalNoise = 0x1p19;

// In units. Replacing one update by another changes at most twice the norm.
double deviation_of(const privacy::LocalPrivacySpec& spec, std::size_t values) {
  return 2 *
         noise_deviation(spec.noise_multiplier, std::ldexp(spec.clipping_norm, spec.fraction_bits), values);
}

}  // namespace

int local_fraction_bits(const privacy::LocalPrivacySpec& spec) {
  privacy::LocalPrivacySpec whole = spec;
  whole.fraction_bits = 0;
  return static_cast<int>(std::floor(std::log2(kFinestLocalNoise / deviation_of(whole, 0))));
}

Result<std::uint64_t> make_private(std::span<float> values, const privacy::LocalPrivacySpec& spec,
                                   const PrivateSum::Noise& noise) {
  if (!clip_values(spec.clipping_norm, values)) return invalid("a value of the update is not finite");
  const auto variance = privacy::noise_variance(deviation_of(spec, values.size()));
  if (!variance)
    return Error{ErrorCode::kUnsupported, "the run requires more noise than this program can generate"};
  AlignedBuffer<std::int64_t> numbers(values.size());
  const aggregation::FixedPoint format{.fraction_bits = spec.fraction_bits, .max_abs = spec.clipping_norm};
  if (!aggregation::contribution(format, SampleCount(1), values, numbers.span()))
    return invalid("a value of the update is too large for the fixed-point format of the noise");
  const Secret key = privacy::noise_key(*noise.root, {noise.task, *variance}, numbers.span());
  Sequential here;
  privacy::add_noise(numbers.span(), {.key = key, .variance = *variance}, here);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::ldexp(static_cast<double>(numbers.data()[i]), -spec.fraction_bits));
  return privacy::release_id(key);
}

}  // namespace fedge::run
