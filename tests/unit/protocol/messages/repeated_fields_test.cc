// Checks that repeated fields are counted before they are parsed: for every repeated field of the protocol
// definition, a message of two MiB.
#include <doctest/doctest.h>

#include <cctype>
#include <fstream>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "protocol/codec.h"
#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

struct RepeatedField {
  std::string message;  // the name of its type
  std::string type, name;
  std::uint32_t number = 0;
};

std::vector<RepeatedField> repeated_fields() {
  std::ifstream file(FEDGE_SOURCE_DIR "/protocol/proto/fedge.proto");
  const std::regex message("message (\\w+) \\{");
  const std::regex field("  repeated (\\w+) (\\w+) = (\\d+);.*");
  std::vector<RepeatedField> fields;
  std::string within;
  std::smatch found;
  for (std::string line; std::getline(file, line);) {
    if (std::regex_match(line, found, message)) {
      within.clear();
      for (const char c : found[1].str()) {
        if (std::isupper(static_cast<unsigned char>(c)) != 0 && !within.empty()) within += '_';
        within += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      }
    } else if (std::regex_match(line, found, field)) {
      fields.push_back({within, found[1], found[2], static_cast<std::uint32_t>(std::stoul(found[3]))});
    }
  }
  return fields;
}

std::optional<MessageType> type_named(const std::string& name) {
  for (std::uint16_t number = 0; number < 256; ++number)
    if (name_of(static_cast<MessageType>(number)) == name) return static_cast<MessageType>(number);
  return std::nullopt;
}

// Repeats the field with its smallest value, in separate entries or packed.
std::string two_mib_of(const RepeatedField& field, bool packed) {
  const bool varint = field.type == "uint32" || field.type == "uint64" || field.type == "sint64";
  const bool fixed = field.type == "fixed64" || field.type == "double";
  const bool real = field.type == "float";
  const std::size_t value = fixed ? 8 : real ? 4 : 1;
  const std::uint32_t kind = packed ? 2 : varint ? 0 : fixed ? 1 : real ? 5 : 2;
  const std::string tag(1, static_cast<char>(field.number << 3 | kind));
  std::string bytes;
  if (packed) {
    const std::size_t length = (kMaxHeader - 16) / value * value;
    bytes = tag;
    for (std::size_t rest = length; rest > 0; rest >>= 7)
      bytes += static_cast<char>((rest & 127) | (rest > 127 ? 128 : 0));
    return bytes + std::string(length, '\0');
  }
  while (bytes.size() + 1 + value <= kMaxHeader) bytes += tag + std::string(value, '\0');
  return bytes;
}

}  // namespace

TEST_CASE("A6 row 20: codec: what repeats in a message is counted before any of it is parsed") {
  const std::vector<RepeatedField> fields = repeated_fields();
  REQUIRE(fields.size() >= 20);
  for (const RepeatedField& field : fields) {
    CAPTURE(field.message);
    CAPTURE(field.name);
    const auto type = type_named(field.message);
    REQUIRE(type);
    REQUIRE(field.number < 16);  // its tag is one byte
    const bool number = field.type == "uint32" || field.type == "uint64" || field.type == "sint64" ||
                        field.type == "fixed64" || field.type == "float" || field.type == "double";
    for (const bool packed : {false, true}) {
      if (packed && !number) continue;
      const std::string bytes = two_mib_of(field, packed);
      const auto decoded = decode(*type, std::as_bytes(std::span(bytes)));
      REQUIRE_FALSE(decoded);
      CHECK(decoded.error().message.starts_with(field.message + ": " + field.name +
                                                ": the number of elements is above "));
    }
  }
}

}  // namespace fedge::protocol
