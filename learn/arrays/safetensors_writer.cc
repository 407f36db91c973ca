#include "learn/arrays/safetensors_writer.h"

#include "core/check.h"
#include "core/platform/files.h"
#include "core/text.h"
#include "learn/arrays/safetensors_array.h"

namespace fedge::learn {
namespace {

std::string header_of(std::span<const ArrayOut> arrays) {
  std::string text;
  std::size_t begin = 0;
  for (const ArrayOut& array : arrays) {
    std::string shape;
    std::size_t elements = 1;
    for (const std::size_t size : array.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
      elements *= size;
    }
    FEDGE_CHECK(array.bytes.size() == elements * bytes_of(array.type), "an array has the bytes of its shape");
    text += (text.empty() ? "{" : ",") + json_text(array.name) + R"(:{"dtype":")" +
            safetensors_name(array.type) + R"(","shape":[)" + shape + R"(],"data_offsets":[)" +
            std::to_string(begin) + "," + std::to_string(begin + array.bytes.size()) + "]}";
    begin += array.bytes.size();
  }
  text += text.empty() ? "{}" : "}";
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<char>(text.size() >> (8 * i) & 0xFF);
  return length + text;
}

}  // namespace

Result<void> write_safetensors(std::span<const ArrayOut> arrays, const std::filesystem::path& path,
                               unsigned mode) {
  const std::string header = header_of(arrays);
  std::vector<std::span<const std::byte>> pieces = {std::as_bytes(std::span(header))};
  for (const ArrayOut& array : arrays) pieces.push_back(array.bytes);
  return write_file_atomic(path, pieces, mode);
}

}  // namespace fedge::learn
