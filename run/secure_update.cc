#include "run/secure_update.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "aggregation/fixed_point.h"
#include "aggregation/kernels/fold.h"
#include "core/check.h"
#include "core/text.h"
#include "learn/evaluation/sums.h"
#include "privacy/differential/noise.h"
#include "protocol/limits.h"

namespace fedge::run {
namespace {

// Bytes of a masked update in memory at a time while it is added.
constexpr std::size_t kMaskedPiece = std::size_t{1} << 18;
constexpr double kLossUnit = 0x1p16;
// Limits for the reported loss and samples, so that no sum overflows; larger values count as these.
constexpr double kMostLoss = 0x1p10;
constexpr std::uint64_t kMostSamples = std::uint64_t{1} << 21;

static_assert(protocol::kMaxSecureCells + kSecureFigures <= protocol::kMaxSecureScalars);
static_assert(1 + kSecureFigures + learn::EvaluationSums::kMostSums <= protocol::kMaxSecureScalars);
static_assert(learn::EvaluationSums::kMostSums <= protocol::kMaxTaskSums);
static_assert(protocol::kMaxSecureScalars <= privacy::kMaxScalars);

// Repacks an update's values from its coverage to the masked coverage, with zeros outside the update's.
AlignedBuffer<float> repacked(const PlainUpdate& update, const privacy::Masking& masking) {
  AlignedBuffer<float> values(masking.coverage().count());
  std::size_t trained = 0;  // position in update.values
  std::size_t masked = 0;   // position in values
  auto to = masking.contributes().ranges().begin();
  const auto end = masking.contributes().ranges().end();
  auto whole = masking.coverage().ranges().begin();
  for (const Range& range : update.coverage->ranges()) {
    for (; to != end && to->begin < range.end; ++to) {
      FEDGE_CHECK(to->begin >= range.begin && to->end <= range.end, "a client masks what it has trained");
      for (; whole->end <= to->begin; ++whole) masked += whole->size();
      std::copy_n(update.values.data() + trained + (to->begin - range.begin), to->size(),
                  values.data() + masked + (to->begin - whole->begin));
    }
    trained += range.size();
  }
  FEDGE_CHECK(to == end, "a client masks what it has trained");
  return values;
}

// Clips the values to the run's norm, if any, and each value to what can be summed. Returns false if one is
// not finite. Always processes all values.
bool make_summable(const privacy::MaskingSpec& spec, std::span<float> values) {
  if (spec.clipping_norm > 0 && !clip_values(spec.clipping_norm, values)) return false;
  const auto limit = std::bit_cast<float>(aggregation::limit_bits(spec.max_abs));
  bool finite = true;
  for (float& value : values) {
    finite = finite && std::isfinite(value);
    value = std::clamp(value, -limit, limit);
  }
  return finite;
}

// With a clipping norm every update has the same weight, including one of zeros.
std::uint64_t weight_of(const PlainUpdate& update, const privacy::MaskingSpec& spec) {
  const bool counts = update.samples > SampleCount(0) || spec.clipping_norm > 0;
  return counts ? spec.weight_of(update.samples) : 0;
}

// Converts to words modulo 2^32, rounded up or down at random so that the mean is unbiased.
void round_at_random(const privacy::MaskingSpec& spec, double weight, std::span<const float> values, Rng rng,
                     std::span<std::uint32_t> words) {
  const double scale = std::ldexp(weight, spec.fraction_bits);
  for (std::size_t i = 0; i < values.size(); ++i)
    words[i] = static_cast<std::uint32_t>(
        static_cast<std::int64_t>(std::floor(static_cast<double>(values[i]) * scale + rng.uniform())));
}

Error not_finite() { return invalid("a value of the update is not finite"); }

// An update during masking.
struct Making {
  const PlainUpdate& update;
  const privacy::MaskingSpec& spec;
  const privacy::Masking& masking;
  Parallel& parallel;
};

// Adds the client's part of the noise. Its deviation covers all of the session's parameters, however many
// this client has trained.
Result<std::optional<std::uint64_t>> add_noise(const Making& making, std::span<std::int64_t> numbers) {
  FEDGE_CHECK(making.update.noise.has_value(), "a client that adds noise has some");
  const privacy::MaskingSpec& spec = making.spec;
  std::size_t summed = 0;
  for (const Range& cell : making.masking.cells()) summed += cell.size();
  const double norm = spec.norm_units();
  const auto variance =
      privacy::noise_variance(noise_deviation(spec.noise_multiplier, norm, summed), spec.noise);
  if (!variance)
    return Error{ErrorCode::kUnsupported, "the run requires more noise than this program can generate"};
  const PrivateSum::Noise& noise = *making.update.noise;
  const Secret key = privacy::noise_key(*noise.root, {noise.task, *variance, spec.noise}, numbers);
  privacy::add_noise(numbers, {.key = key, .variance = *variance, .kind = spec.noise}, making.parallel);
  return std::optional(privacy::release_id(key));
}

// Computes the client's contribution to the sums before masking. Returns the release id of its noise.
Result<std::optional<std::uint64_t>> make_numbers(const Making& making, std::span<const float> values,
                                                  std::span<std::int64_t> numbers) {
  const privacy::MaskingSpec& spec = making.spec;
  const aggregation::FixedPoint format{.fraction_bits = spec.fraction_bits, .max_abs = spec.max_abs};
  const SampleCount weight(weight_of(making.update, spec));
  FEDGE_CHECK(aggregation::contribution(format, weight, values, numbers), "values that can be summed");
  if (spec.noise_multiplier == 0) return std::optional<std::uint64_t>();
  return add_noise(making, numbers);
}

// Same modulo 2^32. Noised values are rounded to the nearest, as the guarantee requires, not at random.
Result<std::optional<std::uint64_t>> make_words(const Making& making, std::span<const float> values,
                                                std::span<std::uint32_t> words) {
  const privacy::MaskingSpec& spec = making.spec;
  if (spec.clipping_norm == 0) {
    const auto weight = static_cast<double>(weight_of(making.update, spec));
    round_at_random(spec, weight, values, making.update.rounding, words);
    return std::optional<std::uint64_t>();
  }
  AlignedBuffer<std::int64_t> numbers(words.size());
  FEDGE_TRY(release, make_numbers(making, values, numbers.span()));
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::uint32_t>(numbers.data()[i]);
  return release;
}

std::vector<std::uint64_t> scalars_of(const PlainUpdate& update, const privacy::MaskingSpec& spec,
                                      const privacy::Masking& masking) {
  std::vector<std::uint64_t> scalars;
  const std::uint64_t weight = weight_of(update, spec);
  for (const Range& cell : masking.cells())
    scalars.push_back(masking.contributes().contains(cell.begin) ? weight : 0);
  const bool tells = spec.clipping_norm == 0 && update.samples > SampleCount(0);
  const double loss = tells ? std::clamp(update.loss, -kMostLoss, kMostLoss) : 0;
  const std::uint64_t samples = tells ? std::min(update.samples.value(), kMostSamples) : 0;
  scalars.push_back(
      static_cast<std::uint64_t>(std::llround(loss * static_cast<double>(samples) * kLossUnit)));
  scalars.push_back(samples);
  for (const std::int64_t sum : update.task_sums) scalars.push_back(static_cast<std::uint64_t>(sum));
  return scalars;
}

}  // namespace

Result<MaskedUpdate> mask_update(const PlainUpdate& update, const privacy::MaskingSpec& spec,
                                 const privacy::Masking& masking, Parallel& parallel) {
  FEDGE_CHECK(update.values.size() == update.coverage->count(), "a value for each covered parameter");
  if (masking.cells().size() + kSecureFigures + update.task_sums.size() > privacy::kMaxScalars)
    return Error{ErrorCode::kRefused, "the session has " + std::to_string(masking.cells().size()) +
                                          " cells, too many for the sums of an evaluation"};
  AlignedBuffer<float> values = repacked(update, masking);
  PlainUpdate summed = update;
  std::optional<Error> fault;
  if (!make_summable(spec, values.span())) {
    fault = not_finite();
    std::ranges::fill(values.span(), 0.0F);
    summed.samples = SampleCount(0);
  }
  const std::size_t count = values.size();
  const bool wide = spec.codec == protocol::Codec::kMasked64;
  MaskedUpdate masked{.coverage = masking.coverage(),
                      .words = std::vector<std::byte>(count * (wide ? 8 : 4)),
                      .scalars = scalars_of(summed, spec, masking),
                      .fault = std::move(fault)};
  std::byte* bytes = masked.words.data();
  const Making making{summed, spec, masking, parallel};
  if (wide) {
    FEDGE_TRY(release, make_numbers(making, values.span(), {reinterpret_cast<std::int64_t*>(bytes), count}));
    masked.release = release;
    masking.apply(std::span(reinterpret_cast<std::uint64_t*>(bytes), count), masked.scalars, parallel);
  } else {
    const std::span words(reinterpret_cast<std::uint32_t*>(bytes), count);
    FEDGE_TRY(release, make_words(making, values.span(), words));
    masked.release = release;
    masking.apply(words, masked.scalars, parallel);
  }
  return masked;
}

SecureSum::SecureSum(const privacy::MaskingSpec& spec, std::vector<Range> cells, std::size_t task_sums)
    : spec_(spec),
      cells_(std::move(cells)),
      scalars_(cells_.size() + kSecureFigures + task_sums),
      task_sums_(task_sums) {
  std::size_t position = 0;
  for (const Range& cell : cells_) {
    positions_.push_back(position);
    position += cell.size();
  }
  if (spec_.codec == protocol::Codec::kMasked64)
    wide_ = AlignedBuffer<std::int64_t>(position);
  else
    narrow_ = AlignedBuffer<std::uint32_t>(position);
}

std::size_t SecureSum::position_of(std::size_t parameter) const {
  const auto cell = std::ranges::upper_bound(cells_, parameter, {}, &Range::end);
  FEDGE_CHECK(cell != cells_.end() && cell->begin <= parameter, "a masked parameter is in a cell");
  return positions_[static_cast<std::size_t>(cell - cells_.begin())] + parameter - cell->begin;
}

template <class Word>
Result<void> SecureSum::add_words(Word* sums, const Masked& update) {
  AlignedBuffer<Word> piece(std::min(kMaskedPiece / sizeof(Word), update.coverage->count()));
  std::uint64_t read = 0;
  for (const Range& range : update.coverage->ranges()) {
    // A range may continue across adjacent cells; those are adjacent in the sums too.
    Word* sum = sums + position_of(range.begin);
    FEDGE_CHECK(position_of(range.end - 1) == position_of(range.begin) + range.size() - 1,
                "what is masked is a union of cells");
    for (std::size_t done = 0; done < range.size();) {
      const auto words = piece.span().first(std::min(piece.size(), range.size() - done));
      FEDGE_TRY_VOID(update.read(read, std::as_writable_bytes(words)));
      for (std::size_t i = 0; i < words.size(); ++i) sum[done + i] += words[i];
      done += words.size();
      read += words.size_bytes();
    }
  }
  return {};
}

Result<void> SecureSum::add(const Masked& update) {
  FEDGE_CHECK(update.scalars.size() == scalars_.size(), "scalars for this session");
  if (spec_.codec == protocol::Codec::kMasked64)
    FEDGE_TRY_VOID(add_words(wide_words().data(), update));
  else
    FEDGE_TRY_VOID(add_words(narrow_.data(), update));
  for (std::size_t s = 0; s < scalars_.size(); ++s) scalars_[s] += update.scalars[s];
  ++updates_;
  return {};
}

Result<void> check_weights(const privacy::MaskingSpec& spec, std::span<const std::uint64_t> weights,
                           std::size_t updates) {
  const std::uint64_t most = updates * std::max(spec.uniform_weight, spec.max_weight);
  for (const std::uint64_t weight : weights)
    if (weight > most)
      return invalid("the sum of " + std::to_string(updates) + " masked updates has a weight of " +
                     std::to_string(weight) + ", but at most " + std::to_string(most) +
                     " is possible: a client has sent an invalid update");
  return {};
}

Result<SecureSum::Plain> SecureSum::unmask(const privacy::SumMasks& masks, Parallel& parallel) && {
  Plain plain;
  if (spec_.codec == protocol::Codec::kMasked64) {
    masks.take_away(wide_words(), scalars_, parallel);
    plain.sums = std::move(wide_);
  } else {
    masks.take_away(narrow_.span(), scalars_, parallel);
    plain.sums = AlignedBuffer<std::int64_t>(narrow_.size());
    for (std::size_t i = 0; i < narrow_.size(); ++i)
      plain.sums.data()[i] = static_cast<std::int32_t>(narrow_.data()[i]);
  }
  plain.updates = updates_;
  const auto figures = scalars_.begin() + static_cast<std::ptrdiff_t>(cells_.size());
  plain.weights.assign(scalars_.begin(), figures);
  for (auto sum = figures + kSecureFigures; sum != scalars_.end(); ++sum)
    plain.task_sums.push_back(static_cast<std::int64_t>(*sum));
  FEDGE_TRY_VOID(check_weights(spec_, plain.weights, updates_));
  if (!plain.weights.empty() && std::ranges::max(plain.weights) == 0)
    return Error{ErrorCode::kUnavailable,
                 "all masked updates have weight 0: no client produced an update that can be summed"};
  plain.samples = figures[1];
  const auto loss = static_cast<double>(static_cast<std::int64_t>(figures[0]));
  plain.loss = plain.samples > 0 ? loss / kLossUnit / static_cast<double>(plain.samples) : 0;
  plain.cells = std::move(cells_);
  narrow_ = {};
  return plain;
}

}  // namespace fedge::run
