#include "learn/arrays/npy.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

namespace fedge::learn {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they are stored");

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;
constexpr std::size_t kMaxDimensions = 32;
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 48;

struct TypeName {
  std::string_view code;  // NumPy's, without the byte order
  ElementType type;
  std::size_t bytes;
  const char* name;
};
constexpr std::array<TypeName, 12> kTypes = {{
    {"b1", ElementType::kBool, 1, "bool"},
    {"i1", ElementType::kInt8, 1, "int8"},
    {"i2", ElementType::kInt16, 2, "int16"},
    {"i4", ElementType::kInt32, 4, "int32"},
    {"i8", ElementType::kInt64, 8, "int64"},
    {"u1", ElementType::kUint8, 1, "uint8"},
    {"u2", ElementType::kUint16, 2, "uint16"},
    {"u4", ElementType::kUint32, 4, "uint32"},
    {"u8", ElementType::kUint64, 8, "uint64"},
    {"f2", ElementType::kFloat16, 2, "float16"},
    {"f4", ElementType::kFloat32, 4, "float32"},
    {"f8", ElementType::kFloat64, 8, "float64"},
}};

const TypeName& entry_of(ElementType type) { return *std::ranges::find(kTypes, type, &TypeName::type); }

// IEEE 754 binary16.
double from_half(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const int fraction = bits & 0x3FF;
  double value = 0.0;
  if (exponent == 0x1F) {
    value = fraction == 0 ? HUGE_VAL : std::nan("");
  } else {
    value = std::ldexp(exponent == 0 ? fraction : fraction + 1024, std::max(exponent, 1) - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

template <class T>
void widen(std::span<const std::byte> bytes, std::span<double> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value{};
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<double>(value);
  }
}

// The header's dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class Dictionary {
 public:
  Dictionary(std::string_view text, const std::string& name) : rest_(text), name_(name) {}

  Result<NpyHeader> parse() {
    if (!take('{')) return malformed();
    while (!take('}')) {
      const auto key = quoted();
      if (!key || !take(':')) return malformed();
      FEDGE_TRY_VOID(read_value(*key));
      if (!take(',') && !next_is('}')) return malformed();
    }
    skip_spaces();
    if (!rest_.empty() || !type_ || !fortran_ || !shape_) return malformed();
    if (*fortran_ && shape_->size() > 1)
      return Error{ErrorCode::kUnsupported,
                   name_ + " is stored in Fortran order; save numpy.ascontiguousarray(array)"};
    NpyHeader header{*type_, *shape_, 1};
    if (std::ranges::find(header.shape, 0U) != header.shape.end()) header.elements = 0;
    for (const std::size_t size : header.shape) {
      if (header.elements > 0 && size > kMaxElements / header.elements)
        return Error{ErrorCode::kUnsupported, name_ + " has more than 2^48 elements"};
      header.elements *= size;
    }
    return header;
  }

 private:
  Error malformed() const { return {ErrorCode::kCorrupt, name_ + " has a malformed NPY header"}; }

  Result<void> read_value(std::string_view key) {
    if (key == "descr") return read_type();
    if (key == "fortran_order") {
      fortran_ = word("True");
      return *fortran_ || word("False") ? Result<void>() : malformed();
    }
    return key == "shape" ? read_shape() : malformed();
  }

  Result<void> read_type() {
    const auto text = quoted();
    if (!text)
      return Error{ErrorCode::kUnsupported, name_ + " has elements with fields, which are not supported"};
    std::string_view code = *text;
    const char order = code.empty() ? '\0' : code.front();
    if (order == '<' || order == '>' || order == '|' || order == '=') code.remove_prefix(1);
    const auto found = std::ranges::find(kTypes, code, &TypeName::code);
    if (found == kTypes.end())
      return Error{ErrorCode::kUnsupported,
                   name_ + " has elements of type \"" + printable(*text) +
                       "\"; supported are bool, int8 to int64, uint8 to uint64, float16, float32, float64"};
    if (order == '>' && found->bytes > 1)
      return Error{ErrorCode::kUnsupported, name_ +
                                                " is in big-endian byte order, which is not supported; save "
                                                "array.astype(\"" +
                                                found->name + "\")"};
    type_ = found->type;
    return {};
  }

  Result<void> read_shape() {
    if (!take('(')) return malformed();
    shape_.emplace();
    while (!take(')')) {
      skip_spaces();
      std::size_t size = 0;
      const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
      if (error != std::errc() || shape_->size() == kMaxDimensions) return malformed();
      rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
      shape_->push_back(size);
      if (!take(',') && !next_is(')')) return malformed();
    }
    return {};
  }

  void skip_spaces() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n')) rest_.remove_prefix(1);
  }
  bool next_is(char c) {
    skip_spaces();
    return !rest_.empty() && rest_.front() == c;
  }
  bool take(char c) {
    if (!next_is(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool word(std::string_view expected) {
    skip_spaces();
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(expected.size());
    return true;
  }
  std::optional<std::string_view> quoted() {
    const char quote = next_is('"') ? '"' : '\'';
    if (!take(quote)) return std::nullopt;
    const std::size_t end = rest_.find(quote);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return text;
  }
  static std::string printable(std::string_view text) {
    std::string shown(text.substr(0, 20));
    for (char& c : shown)
      if (c < ' ' || c > '~') c = '?';
    return shown;
  }

  std::string_view rest_;
  const std::string& name_;
  std::optional<ElementType> type_;
  std::optional<bool> fortran_;
  std::optional<std::vector<std::size_t>> shape_;
};

}  // namespace

std::size_t bytes_of(ElementType type) { return entry_of(type).bytes; }
const char* name_of(ElementType type) { return entry_of(type).name; }
bool is_integer(ElementType type) { return type < ElementType::kFloat16; }

void to_doubles(ElementType type, std::span<const std::byte> bytes, std::span<double> out) {
  switch (type) {
    case ElementType::kBool:
    case ElementType::kUint8:
      return widen<std::uint8_t>(bytes, out);
    case ElementType::kInt8:
      return widen<std::int8_t>(bytes, out);
    case ElementType::kInt16:
      return widen<std::int16_t>(bytes, out);
    case ElementType::kInt32:
      return widen<std::int32_t>(bytes, out);
    case ElementType::kInt64:
      return widen<std::int64_t>(bytes, out);
    case ElementType::kUint16:
      return widen<std::uint16_t>(bytes, out);
    case ElementType::kUint32:
      return widen<std::uint32_t>(bytes, out);
    case ElementType::kUint64:
      return widen<std::uint64_t>(bytes, out);
    case ElementType::kFloat32:
      return widen<float>(bytes, out);
    case ElementType::kFloat64:
      return widen<double>(bytes, out);
    case ElementType::kFloat16:
      break;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + 2 * i, 2);
    out[i] = from_half(bits);
  }
}

Result<std::size_t> npy_data_offset(std::span<const std::byte> start, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.size() < kNpyPreamble || !text.starts_with(kMagic))
    return Error{ErrorCode::kCorrupt, name + " is not an NPY file"};
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(start[i]); };
  const std::size_t version = byte(6);
  if (version < 1 || version > 3)
    return Error{ErrorCode::kUnsupported,
                 name + " has version " + std::to_string(version) + " of the NPY format, expected 1 to 3"};
  const std::size_t offset = version == 1
                                 ? 10 + byte(8) + (byte(9) << 8)
                                 : 12 + byte(8) + (byte(9) << 8) + (byte(10) << 16) + (byte(11) << 24);
  if (offset > kMaxHeaderBytes) return Error{ErrorCode::kCorrupt, name + " has too long an NPY header"};
  return offset;
}

Result<NpyHeader> parse_npy_header(std::span<const std::byte> start, const std::string& name) {
  FEDGE_TRY(offset, npy_data_offset(start, name));
  if (start.size() != offset) return Error{ErrorCode::kCorrupt, name + " ends within its NPY header"};
  const std::size_t first = start[6] == std::byte{1} ? 10 : 12;
  if (offset < first) return Error{ErrorCode::kCorrupt, name + " has a malformed NPY header"};
  const std::string_view text(reinterpret_cast<const char*>(start.data()) + first, offset - first);
  return Dictionary(text, name).parse();
}

}  // namespace fedge::learn
