#include "core/safetensors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "core/platform/files.h"
#include "core/platform/memory.h"
#include "core/text.h"

namespace fedge {
namespace {

using nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
constexpr const char* kMetadataKey = "__metadata__";
constexpr std::size_t kMaxDimensions = 64;

Error corrupt(const std::string& name, const std::string& what) {
  return {ErrorCode::kCorrupt, name + ": " + what};
}

// Shortens a string for messages: a hostile name may have megabytes.
std::string shown(const std::string& text) { return json_text(text.substr(0, 80)); }

std::string shape_text(const std::vector<std::size_t>& shape) {
  std::string out = "[";
  for (const std::size_t dimension : shape) out += (out.size() > 1 ? ", " : "") + std::to_string(dimension);
  return out + "]";
}

struct Entry {
  std::string name;
  std::string dtype;
  std::vector<std::size_t> shape;
  std::vector<std::size_t> offsets;
};

// Handles the header during parsing and accepts only the allowed structure: excessive depth, duplicate keys
// and unknown keys are refused immediately. A callback that returns false ends the parse.
class HeaderHandler : public nlohmann::json_sax<json> {
 public:
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
  std::string problem;
  ErrorCode code = ErrorCode::kCorrupt;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return unexpected("a float"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ == State::kShape) {
      if (entries.back().shape.size() == kMaxDimensions) return fail("has more than 64 dimensions");
      entries.back().shape.push_back(value);
      return true;
    }
    if (state_ == State::kOffsets) {
      if (entries.back().offsets.size() == 2) return fail("has more than two data_offsets");
      entries.back().offsets.push_back(value);
      return true;
    }
    return unexpected("a number");
  }

  bool string(string_t& value) override {
    if (state_ == State::kMetadata) {
      metadata[key_] = std::move(value);
      return true;
    }
    if (state_ != State::kTensor || key_ != "dtype") return unexpected("a string");
    entries.back().dtype = std::move(value);
    return true;
  }

  bool start_object(std::size_t) override {
    if (state_ == State::kStart) {
      state_ = State::kTop;
      return true;
    }
    if (state_ != State::kTop) return unexpected("an object");
    state_ = key_ == kMetadataKey ? State::kMetadata : State::kTensor;
    if (state_ == State::kMetadata) return true;
    if (entries.size() == kMaxSafetensorsTensors) {
      code = ErrorCode::kResource;
      problem = "has more than " + std::to_string(kMaxSafetensorsTensors) + " tensors";
      return false;
    }
    entries.push_back({key_, {}, {}, {}});
    inner_.clear();
    return true;
  }

  bool end_object() override {
    if (state_ == State::kTensor && inner_.size() != 3) return fail("lacks dtype, shape or data_offsets");
    state_ = state_ == State::kTop ? State::kEnd : State::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    if (state_ == State::kTensor && key_ == "shape") {
      state_ = State::kShape;
    } else if (state_ == State::kTensor && key_ == "data_offsets") {
      state_ = State::kOffsets;
    } else {
      return unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    state_ = State::kTensor;
    return true;
  }

  bool key(string_t& value) override {
    key_ = std::move(value);
    switch (state_) {
      case State::kTop:
        return names_.insert(key_).second || repeated();
      case State::kMetadata:
        return !metadata.contains(key_) || repeated();
      case State::kTensor:
        if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
          return fail("has the unknown key " + shown(key_));
        return inner_.insert(key_).second || repeated();
      default:
        return unexpected("a key");
    }
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    problem = "is not valid JSON at byte " + std::to_string(position);
    return false;
  }

 private:
  enum class State { kStart, kTop, kMetadata, kTensor, kShape, kOffsets, kEnd };

  bool unexpected(const char* what) {
    problem = "contains " + std::string(what) + " in an unexpected place" +
              (key_.empty() ? "" : ", after " + shown(key_));
    return false;
  }
  bool repeated() {
    problem = "contains the key " + shown(key_) + " twice";
    return false;
  }
  bool fail(const std::string& what) {
    problem = "is invalid: tensor " + shown(entries.back().name) + " " + what;
    return false;
  }

  State state_ = State::kStart;
  std::string key_;
  std::set<std::string> names_;
  std::set<std::string> inner_;
};

// Bytes of an element of this type; 0 for an unknown type.
std::size_t element_bytes(const std::string& dtype) {
  static const std::map<std::string, std::size_t> kBytes = {
      {"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"I64", 8}, {"I32", 4},
      {"I16", 2}, {"I8", 1},  {"U64", 8}, {"U32", 4},  {"U16", 2},     {"U8", 1},      {"BOOL", 1}};
  const auto found = kBytes.find(dtype);
  return found == kBytes.end() ? 0 : found->second;
}

// Checks that shape and offsets are consistent and within `available` bytes.
Result<void> check_place(const Entry& entry, std::size_t available, const std::string& name) {
  const std::string tensor = "tensor " + shown(entry.name);
  if (entry.offsets.size() != 2 || entry.offsets[0] > entry.offsets[1])
    return corrupt(name, tensor + " has invalid data_offsets, expected [begin, end]");
  std::size_t size = element_bytes(entry.dtype);
  for (const std::size_t dimension : entry.shape) {
    if (dimension == 0)
      return Error{ErrorCode::kUnsupported,
                   name + ": " + tensor + " is empty: its shape is " + shape_text(entry.shape)};
    if (size > available / dimension) return corrupt(name, tensor + " is larger than the file");
    size *= dimension;
  }
  if (entry.offsets[1] - entry.offsets[0] != size)
    return corrupt(name, tensor + " of shape " + shape_text(entry.shape) + " needs " + std::to_string(size) +
                             " bytes, but its data_offsets give it " +
                             std::to_string(entry.offsets[1] - entry.offsets[0]));
  return {};
}

Result<void> check(const Entry& entry, std::size_t available, const std::string& name) {
  if (entry.dtype != "F32")
    return Error{ErrorCode::kUnsupported, name + ": tensor " + shown(entry.name) + " has the dtype " +
                                              shown(entry.dtype) +
                                              "; only \"F32\" (32-bit float) is supported"};
  return check_place(entry, available, name);
}

// The layout of tensors that fill `data_size` bytes without gap or overlap.
Result<ParameterLayout> layout_of(std::vector<Entry> entries, std::size_t data_size,
                                  const std::string& name) {
  std::vector<Entry*> order;
  for (Entry& entry : entries) {
    FEDGE_TRY_VOID(check(entry, data_size, name));
    order.push_back(&entry);
  }
  std::sort(order.begin(), order.end(),
            [](const Entry* a, const Entry* b) { return a->offsets[0] < b->offsets[0]; });
  ParameterLayout layout;
  for (Entry* entry : order) {
    if (entry->offsets[0] != layout.size_bytes()) {
      return corrupt(
          name, "tensor " + shown(entry->name) + " begins at byte " + std::to_string(entry->offsets[0]) +
                    " of the data, but the tensors before it end at " + std::to_string(layout.size_bytes()));
    }
    layout.add(std::move(entry->name), std::move(entry->shape));
  }
  if (layout.size_bytes() != data_size) {
    return corrupt(name, "holds " + std::to_string(data_size) + " bytes of data, but its tensors take " +
                             std::to_string(layout.size_bytes()));
  }
  return layout;
}

// The header's length from the first eight bytes of a file of this size.
Result<std::size_t> header_length(std::span<const std::byte> begin, std::uint64_t file_size,
                                  const std::string& name) {
  if (begin.size() < kLengthBytes) return corrupt(name, "is too short for a .safetensors file");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    length |= std::to_integer<std::uint64_t>(begin[i]) << (8 * i);
  if (length > kMaxSafetensorsHeader) {
    return corrupt(name, "declares a header of " + std::to_string(length) + " bytes, but at most " +
                             std::to_string(kMaxSafetensorsHeader) +
                             " are allowed; is it a .safetensors file?");
  }
  if (length > file_size - kLengthBytes) return corrupt(name, "is truncated: its header is incomplete");
  return static_cast<std::size_t>(length);
}

// The contents of a header.
struct HeaderEntries {
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
};

// `bytes` are the length field and the whole header.
Result<HeaderEntries> parse_entries(std::span<const std::byte> bytes, const std::string& name) {
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + kLengthBytes;
  const std::size_t length = bytes.size() - kLengthBytes;
  if (length == 0 || *text != '{') return corrupt(name, "its header does not begin with {");
  HeaderHandler handler;
  if (!json::sax_parse(text, text + length, &handler)) {
    return Error{handler.code, name + ": its header " + handler.problem};
  }
  return HeaderEntries{std::move(handler.entries), std::move(handler.metadata)};
}

Result<SafetensorsHeader> parse_header(std::span<const std::byte> bytes, std::uint64_t file_size,
                                       const std::string& name) {
  FEDGE_TRY(header, parse_entries(bytes, name));
  FEDGE_TRY(layout, layout_of(std::move(header.entries), file_size - bytes.size(), name));
  return SafetensorsHeader{std::move(layout), std::move(header.metadata), bytes.size()};
}

// The length field and the header.
Result<std::vector<std::byte>> header_bytes(const ReadOnlyFile& file) {
  std::vector<std::byte> bytes(std::min<std::uint64_t>(kLengthBytes, file.size()));
  FEDGE_TRY_VOID(file.read(0, bytes));
  FEDGE_TRY(length, header_length(bytes, file.size(), file.path().string()));
  bytes.resize(kLengthBytes + length);
  FEDGE_TRY_VOID(file.read(0, bytes));
  return bytes;
}

}  // namespace

Result<std::string> safetensors_header(const ParameterLayout& layout,
                                       const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  if (!metadata.empty()) {
    text += "\"" + std::string(kMetadataKey) + "\":{";
    for (const auto& [key, value] : metadata)
      text += (text.back() == '{' ? "" : ",") + json_text(key) + ":" + json_text(value);
    text += "}";
  }
  for (const TensorInfo& tensor : layout.tensors()) {
    if (tensor.name == kMetadataKey)
      return invalid("a tensor cannot be named __metadata__ in a .safetensors file");
    const std::size_t begin = tensor.offset * sizeof(float);
    text += (text.size() > 1 ? "," : "") + json_text(tensor.name) + ":{\"dtype\":\"F32\",\"shape\":[";
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
      text += (i > 0 ? "," : "") + std::to_string(tensor.shape[i]);
    text += "],\"data_offsets\":[" + std::to_string(begin) + "," +
            std::to_string(begin + tensor.size * sizeof(float)) + "]}";
  }
  text += "}";
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  if (text.size() > kMaxSafetensorsHeader || layout.tensors().size() > kMaxSafetensorsTensors) {
    return invalid("the tensor names and metadata of this model are too long for a .safetensors header");
  }
  std::string header(kLengthBytes, '\0');
  for (std::size_t i = 0; i < kLengthBytes; ++i) header[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return header + text;
}

Result<void> write_safetensors(const std::filesystem::path& path, const ParameterVector& values,
                               const std::map<std::string, std::string>& metadata) {
  FEDGE_TRY(header, safetensors_header(values.layout(), metadata));
  const std::array<std::span<const std::byte>, 2> pieces = {std::as_bytes(std::span(header)), values.bytes()};
  return write_file_atomic(path, pieces);
}

Result<ReadOnlyFile> open_safetensors(const std::filesystem::path& path, std::size_t max_bytes) {
  FEDGE_TRY(file, ReadOnlyFile::open(path));
  const std::size_t most = std::min(max_bytes, physical_memory() / 2);
  if (file.size() > most)
    return Error{ErrorCode::kResource,
                 path.string() + " is larger than the limit of " + std::to_string(most) + " bytes"};
  return file;
}

Result<SafetensorsHeader> read_safetensors_header(const ReadOnlyFile& file) {
  FEDGE_TRY(bytes, header_bytes(file));
  return parse_header(bytes, file.size(), file.path().string());
}

Result<TensorTable> read_tensor_table(const ReadOnlyFile& file) {
  const std::string name = file.path().string();
  FEDGE_TRY(bytes, header_bytes(file));
  FEDGE_TRY(header, parse_entries(bytes, name));
  const std::uint64_t available = file.size() - bytes.size();
  TensorTable table{.tensors = {}, .metadata = std::move(header.metadata)};
  for (Entry& entry : header.entries) {
    if (element_bytes(entry.dtype) == 0)
      return Error{ErrorCode::kUnsupported,
                   name + ": tensor " + shown(entry.name) + " has the unknown dtype " + shown(entry.dtype)};
    FEDGE_TRY_VOID(check_place(entry, available, name));
    if (entry.offsets[1] > available)
      return corrupt(name, "tensor " + shown(entry.name) + " is larger than the file");
    table.tensors.push_back({std::move(entry.name), std::move(entry.dtype), std::move(entry.shape),
                             bytes.size() + entry.offsets[0], entry.offsets[1] - entry.offsets[0]});
  }
  return table;
}

Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> bytes,
                                                   const std::string& name) {
  FEDGE_TRY(length, header_length(bytes, bytes.size(), name));
  return parse_header(bytes.first(kLengthBytes + length), bytes.size(), name);
}

Result<Safetensors> read_safetensors(const std::filesystem::path& path, std::size_t max_bytes) {
  FEDGE_TRY(file, open_safetensors(path, max_bytes));
  FEDGE_TRY(header, read_safetensors_header(file));
  return read_safetensors(file, std::move(header));
}

Result<Safetensors> read_safetensors(const ReadOnlyFile& file, SafetensorsHeader header) {
  Safetensors out{ParameterVector(std::make_shared<const ParameterLayout>(std::move(header.layout))),
                  std::move(header.metadata)};
  FEDGE_TRY_VOID(file.read(header.data_offset, std::as_writable_bytes(out.values.values())));
  return out;
}

Result<void> check_same_tensors(const ParameterLayout& have, const ParameterLayout& want) {
  for (const TensorInfo& tensor : have.tensors()) {
    if (want.find(tensor.name) == nullptr)
      return invalid("tensor " + shown(tensor.name) + " does not belong to this model");
  }
  for (const TensorInfo& tensor : want.tensors()) {
    const TensorInfo* found = have.find(tensor.name);
    if (found == nullptr) return invalid("tensor " + shown(tensor.name) + " of this model is missing");
    if (found->shape != tensor.shape) {
      return invalid("tensor " + shown(tensor.name) + " has shape " + shape_text(found->shape) +
                     ", but this model expects " + shape_text(tensor.shape));
    }
  }
  return {};
}

Result<ParameterVector> arrange(const ParameterVector& values,
                                std::shared_ptr<const ParameterLayout> layout) {
  FEDGE_TRY_VOID(check_same_tensors(values.layout(), *layout));
  ParameterVector out(std::move(layout));
  for (const TensorInfo& want : out.layout().tensors())
    std::ranges::copy(values.tensor(*values.layout().find(want.name)), out.tensor(want).begin());
  return out;
}

}  // namespace fedge
