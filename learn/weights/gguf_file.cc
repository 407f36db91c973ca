#include "learn/weights/gguf_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "core/text.h"
#include "learn/text/vocabulary/vocabulary.h"

namespace fedge::learn {
namespace {

constexpr std::uint64_t kMostPairs = 4096;
constexpr std::uint64_t kMostTensors = 16'384;
constexpr std::uint64_t kMostInList = kMaxMerges;  // of a list
constexpr std::uint64_t kMostText = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostMetadata = std::uint64_t{256} << 20;  // bytes before the data

enum GgufType : std::uint32_t { kString = 8, kArray = 9, kBoolean = 7 };

// Bytes of a number of this type; 0 for what is none.
std::size_t number_size(std::uint32_t type) {
  constexpr std::array<std::size_t, 13> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return type < kSizes.size() ? kSizes.at(type) : 0;
}

double number_of(std::uint32_t type, std::uint64_t bits) {
  switch (type) {
    case 1:
      return static_cast<std::int8_t>(bits);
    case 3:
      return static_cast<std::int16_t>(bits);
    case 5:
      return static_cast<std::int32_t>(bits);
    case 6:
      return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case 11:
      return static_cast<double>(static_cast<std::int64_t>(bits));
    case 12:
      return std::bit_cast<double>(bits);
    default:
      return static_cast<double>(bits);
  }
}

// Reads a file from its beginning in pieces. After a failure everything reads as zero.
class GgufReader {
 public:
  explicit GgufReader(const ReadOnlyFile& file) : file_(file) {}

  bool failed() const { return failed_; }
  std::uint64_t position() const { return position_; }

  std::uint64_t bits(std::size_t size) {
    std::array<std::byte, 8> bytes{};
    take(std::span(bytes).first(size));
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8U | std::to_integer<std::uint64_t>(bytes.at(i));
    return value;
  }
  std::string text() {
    const std::uint64_t size = bits(8);
    if (size > kMostText) failed_ = true;
    if (failed_) return {};
    std::string text(size, '\0');
    take(std::as_writable_bytes(std::span(text)));
    return text;
  }
  GgufValue value() {
    const auto type = static_cast<std::uint32_t>(bits(4));
    if (type == kString) return text();
    if (type == kArray) return list();
    if (type == kBoolean) return bits(1) != 0;
    return number(type);
  }

 private:
  double number(std::uint32_t type) {
    const std::size_t size = number_size(type);
    if (size == 0) failed_ = true;
    return failed_ ? 0 : number_of(type, bits(size));
  }
  GgufList list() {
    const auto type = static_cast<std::uint32_t>(bits(4));
    const std::uint64_t count = bits(8);
    if (count > kMostInList) failed_ = true;
    if (type == kString) {
      std::vector<std::string> texts;
      for (std::uint64_t i = 0; i < count && !failed_; ++i) texts.push_back(text());
      return texts;
    }
    std::vector<double> numbers;
    for (std::uint64_t i = 0; i < count && !failed_; ++i) numbers.push_back(number(type));
    return numbers;
  }
  void take(std::span<std::byte> out) {
    if (failed_ || out.size() > kMostMetadata - position_ || out.size() > file_.size() - position_) {
      failed_ = true;
      return;
    }
    for (std::size_t done = 0; done < out.size();) {
      if (position_ < first_ || position_ >= first_ + buffer_.size()) fill();
      if (failed_) return;
      const std::size_t from = position_ - first_;
      const std::size_t count = std::min(out.size() - done, buffer_.size() - from);
      std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(from), count,
                  out.begin() + static_cast<std::ptrdiff_t>(done));
      done += count;
      position_ += count;
    }
  }
  void fill() {
    constexpr std::uint64_t kBuffer = 1 << 16;
    first_ = position_;
    buffer_.resize(std::min(kBuffer, file_.size() - position_));
    if (!file_.read(first_, buffer_)) failed_ = true;
  }

  const ReadOnlyFile& file_;
  std::uint64_t position_ = 0;
  std::uint64_t first_ = 0;  // of the buffer
  std::vector<std::byte> buffer_;
  bool failed_ = false;
};

class GgufParser {
 public:
  explicit GgufParser(const ReadOnlyFile& file) : file_(file), reader_(file) {}

  Result<GgufHeader> run() {
    constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
    if (reader_.bits(4) != kMagic) return broken("it does not begin with GGUF");
    if (const std::uint64_t version = reader_.bits(4); version != 2 && version != 3)
      return Error{ErrorCode::kUnsupported, file_.path().string() + ": GGUF version " +
                                                std::to_string(version) + "; versions 2 and 3 are supported"};
    const std::uint64_t tensors = reader_.bits(8);
    const std::uint64_t pairs = reader_.bits(8);
    if (tensors > kMostTensors || pairs > kMostPairs) return broken("it declares too many tensors or keys");
    for (std::uint64_t i = 0; i < pairs; ++i) {
      std::string key = reader_.text();
      GgufValue value = reader_.value();
      if (reader_.failed()) return broken("its keys are cut off, too long or of an unknown type");
      if (!header_.pairs.emplace(std::move(key), std::move(value)).second)
        return broken("a key occurs twice");
    }
    for (std::uint64_t i = 0; i < tensors; ++i) FEDGE_TRY_VOID(read_tensor());
    return place();
  }

 private:
  Error broken(const std::string& what) const {
    return {ErrorCode::kCorrupt, file_.path().string() + ": not a GGUF file: " + what};
  }

  Result<void> read_tensor() {
    StoredWeight weight{.name = reader_.text()};
    const std::uint64_t dimensions = reader_.bits(4);
    if (dimensions == 0 || dimensions > 4)
      return broken("a tensor has " + std::to_string(dimensions) + " dimensions");
    for (std::uint64_t i = 0; i < dimensions; ++i) weight.shape.insert(weight.shape.begin(), reader_.bits(8));
    const std::uint64_t type = reader_.bits(4);
    weight.offset = reader_.bits(8);
    if (reader_.failed()) return broken("its list of tensors is cut off");
    static const std::map<std::uint64_t, WeightType> kTypes = {
        {0, WeightType::kFloat32}, {1, WeightType::kFloat16}, {2, WeightType::kQ4_0},
        {3, WeightType::kQ4_1},    {8, WeightType::kQ8_0},    {30, WeightType::kBfloat16}};
    const auto known = kTypes.find(type);
    if (known == kTypes.end())
      return Error{ErrorCode::kUnsupported, file_.path().string() + ": tensor " +
                                                json_text(weight.name.substr(0, 80)) + " has the GGML type " +
                                                std::to_string(type) +
                                                "; supported are F32, F16, BF16, Q8_0, Q4_0 and Q4_1"};
    weight.type = known->second;
    header_.weights.push_back(std::move(weight));
    return {};
  }

  // Offsets count from the first aligned byte after the list of tensors.
  Result<GgufHeader> place() {
    double alignment = 32;
    if (const auto found = header_.pairs.find("general.alignment"); found != header_.pairs.end())
      if (const auto* number = std::get_if<double>(&found->second)) alignment = *number;
    if (!(alignment >= 1 && alignment <= 65'536)) return broken("its alignment is out of range");
    const auto step = static_cast<std::uint64_t>(alignment);
    const std::uint64_t begin = (reader_.position() + step - 1) / step * step;
    for (StoredWeight& weight : header_.weights) {
      if (weight.offset > file_.size()) return broken("a tensor begins after its end");
      weight.offset += begin;
    }
    return std::move(header_);
  }

  const ReadOnlyFile& file_;
  GgufReader reader_;
  GgufHeader header_;
};

}  // namespace

Result<GgufHeader> read_gguf_header(const ReadOnlyFile& file) { return GgufParser(file).run(); }

}  // namespace fedge::learn
