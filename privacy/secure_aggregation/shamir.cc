#include "privacy/secure_aggregation/shamir.h"

#include <algorithm>

#include "core/check.h"
#include "core/crypto/random.h"

namespace fedge::privacy {
namespace {

constexpr std::uint64_t kPrime = kShamirPrime;
constexpr unsigned kLimbBits = 52;
constexpr std::uint64_t kLimbMask = (std::uint64_t{1} << kLimbBits) - 1;
// Mask of the last limb: the remaining bits of 256.
constexpr std::uint64_t kLastMask = (std::uint64_t{1} << (256 - 4 * kLimbBits)) - 1;

using Limbs = std::array<std::uint64_t, kSecretLimbs>;

// Reduces x, which must be below 2^62, with one subtraction and without a branch on secrets.
std::uint64_t reduce(std::uint64_t x) {
  const std::uint64_t less = x - kPrime;
  const std::uint64_t borrow = std::uint64_t{0} - (less >> 63);
  return less + (kPrime & borrow);
}

std::uint64_t add(std::uint64_t a, std::uint64_t b) { return reduce(a + b); }

std::uint64_t multiply(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  // 2^61 equals 1 in this field.
  return reduce((static_cast<std::uint64_t>(product) & kPrime) + static_cast<std::uint64_t>(product >> 61));
}

std::uint64_t power(std::uint64_t base, std::uint64_t exponent) {
  std::uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = multiply(result, base);
    base = multiply(base, base);
  }
  return result;
}

std::uint64_t inverse(std::uint64_t a) { return power(a, kPrime - 2); }

Limbs limbs_of(const Secret& secret) {
  std::array<std::uint64_t, 4> words{};
  for (std::size_t i = 0; i < Secret::kSize; ++i)
    words.at(i / 8) |= std::uint64_t{secret.bytes()[i]} << (8 * (i % 8));
  Limbs limbs{};
  for (unsigned l = 0; l < kSecretLimbs; ++l) {
    const unsigned bit = l * kLimbBits;
    const unsigned shift = bit % 64;
    std::uint64_t limb = words.at(bit / 64) >> shift;
    if (shift > 64 - kLimbBits && bit / 64 + 1 < 4) limb |= words.at(bit / 64 + 1) << (64 - shift);
    limbs.at(l) = limb & kLimbMask;
  }
  wipe(std::span(reinterpret_cast<std::uint8_t*>(words.data()), sizeof words));
  return limbs;
}

// Uniform field elements, drawn in one call; values that equal the prime are drawn again.
class FieldNumbers {
 public:
  FieldNumbers(const Entropy& entropy, std::size_t count) : entropy_(entropy), numbers_(count) {
    draw(numbers_);
    for (std::uint64_t& number : numbers_)
      while (number == kPrime) draw({&number, 1});
  }
  ~FieldNumbers() { wipe(bytes(numbers_)); }
  FieldNumbers(const FieldNumbers&) = delete;
  FieldNumbers& operator=(const FieldNumbers&) = delete;
  std::uint64_t operator[](std::size_t i) const { return numbers_[i]; }

 private:
  static std::span<std::uint8_t> bytes(std::span<std::uint64_t> numbers) {
    return {reinterpret_cast<std::uint8_t*>(numbers.data()), numbers.size_bytes()};
  }
  void draw(std::span<std::uint64_t> numbers) const {
    entropy_(bytes(numbers));
    for (std::uint64_t& number : numbers) number &= kPrime;
  }

  const Entropy& entropy_;
  std::vector<std::uint64_t> numbers_;
};

}  // namespace

void Share::encode(std::span<std::uint8_t, kShareBytes> out) const {
  for (std::size_t i = 0; i < kShareBytes; ++i)
    out[i] = static_cast<std::uint8_t>(limbs.at(i / 8) >> (8 * (i % 8)));
}

Result<Share> Share::decode(std::span<const std::uint8_t, kShareBytes> bytes) {
  Share share;
  for (std::size_t i = 0; i < kShareBytes; ++i)
    share.limbs.at(i / 8) |= std::uint64_t{bytes[i]} << (8 * (i % 8));
  for (const std::uint64_t limb : share.limbs)
    if (limb >= kPrime) return invalid("a secret share is out of range");
  return share;
}

std::vector<Share> split(const Secret& secret, std::size_t threshold, std::span<const std::uint32_t> points,
                         const Entropy& entropy) {
  FEDGE_CHECK(threshold >= 1 && threshold <= points.size(), "a threshold within the number of shares");
  Limbs constant = limbs_of(secret);
  // Coefficient c of limb l's polynomial, beginning with the highest power.
  const FieldNumbers coefficients(entropy, (threshold - 1) * kSecretLimbs);
  std::vector<Share> shares(points.size());
  for (std::size_t p = 0; p < points.size(); ++p) {
    FEDGE_CHECK(points[p] != 0, "the value at 0 is the secret");
    Limbs value{};
    for (std::size_t c = 0; c + 1 < threshold; ++c)
      for (std::size_t l = 0; l < kSecretLimbs; ++l)
        value[l] = multiply(add(value[l], coefficients[c * kSecretLimbs + l]), points[p]);
    for (std::size_t l = 0; l < kSecretLimbs; ++l) shares[p].limbs[l] = add(value[l], constant[l]);
  }
  wipe(std::span(reinterpret_cast<std::uint8_t*>(constant.data()), sizeof constant));
  return shares;
}

Result<Recombination> Recombination::of(std::span<const std::uint32_t> points) {
  Recombination result;
  for (const std::uint32_t i : points) {
    if (i == 0) return invalid("a secret share belongs to point 0, which is reserved for the secret");
    // w_i = product over j of x_j / (x_j - x_i)
    std::uint64_t above = 1;
    std::uint64_t below = 1;
    for (const std::uint32_t j : points) {
      if (j == i) continue;
      above = multiply(above, j);
      below = multiply(below, add(j, kPrime - i));
    }
    result.weights_.push_back(multiply(above, inverse(below)));
  }
  std::vector<std::uint32_t> sorted(points.begin(), points.end());
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end())
    return invalid("two secret shares belong to the same point");
  return result;
}

Result<Secret> Recombination::combine(std::span<const Share> shares) const {
  FEDGE_CHECK(shares.size() == weights_.size(), "a share for each point");
  Limbs limbs{};
  for (std::size_t p = 0; p < shares.size(); ++p)
    for (std::size_t l = 0; l < kSecretLimbs; ++l)
      limbs[l] = add(limbs[l], multiply(weights_[p], shares[p].limbs[l]));
  for (std::size_t l = 0; l < kSecretLimbs; ++l)
    if (limbs[l] > (l + 1 < kSecretLimbs ? kLimbMask : kLastMask))
      return Error{ErrorCode::kCorrupt,
                   "the secret shares do not belong together: they combine to an invalid secret"};
  Secret secret;
  for (unsigned bit = 0; bit < 256; bit += 4) {
    const unsigned limb = bit / kLimbBits;
    const auto nibble = static_cast<std::uint8_t>((limbs.at(limb) >> (bit % kLimbBits)) & 15U);
    secret.bytes()[bit / 8] = static_cast<std::uint8_t>(secret.bytes()[bit / 8] | (nibble << (bit % 8)));
  }
  wipe(std::span(reinterpret_cast<std::uint8_t*>(limbs.data()), sizeof limbs));
  return secret;
}

}  // namespace fedge::privacy
