#include "core/safetensors.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>

#include "core/rng.h"
#include "tests/support/safetensors_bytes.h"

using namespace fedge;

namespace {

// A file assembled by hand: length, header, data.
std::string file(const std::string& header, const std::string& data) {
  std::string out(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(header.size() >> (8 * i) & 0xFF);
  return out + header + data;
}

Result<Safetensors> parse_tensors(const std::string& bytes) {
  return test::parse_safetensors(std::as_bytes(std::span(bytes)), "m.safetensors");
}

void check_refused(const std::string& bytes, ErrorCode code, const std::string& words) {
  CAPTURE(words);
  const auto result = parse_tensors(bytes);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code == code);
  CHECK(result.error().message.starts_with("m.safetensors: "));
  CHECK_MESSAGE(result.error().message.find(words) != std::string::npos, result.error().message);
}

std::string tensor(const std::string& name, const std::string& shape, const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"F32\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

// 1.0f, -2.0f, 0.5f, 3.0f as little-endian IEEE 754.
const std::string kFour("\x00\x00\x80\x3f\x00\x00\x00\xc0\x00\x00\x00\x3f\x00\x00\x40\x40", 16);

ParameterVector small_model() {
  ParameterLayout layout;
  layout.add("dense.weight", {1, 3});
  layout.add("dense.bias", {1});
  ParameterVector values(std::make_shared<const ParameterLayout>(layout));
  std::memcpy(values.values().data(), kFour.data(), kFour.size());
  return values;
}

}  // namespace

TEST_CASE("safetensors: a written file is, byte for byte, the hand-made one") {
  char pattern[] = "/tmp/fedge-safetensors-XXXXXX";
  REQUIRE(::mkdtemp(pattern) != nullptr);
  const std::filesystem::path path = std::filesystem::path(pattern) / "model.safetensors";
  REQUIRE(write_safetensors(path, small_model(), {{"run", "a \"b\""}, {"round", "3"}}).has_value());
  std::ifstream in(path, std::ios::binary);
  const std::string got((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  std::string header = R"({"__metadata__":{"round":"3","run":"a \"b\""},)"
                       R"("dense.weight":{"dtype":"F32","shape":[1,3],"data_offsets":[0,12]},)"
                       R"("dense.bias":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}})";
  while (header.size() % 8 != 0) header += ' ';
  CHECK(got == file(header, kFour));
  CHECK(sha256(std::string_view(got).substr(got.size() - 16)) == model_hash(small_model().values()));

  const auto back = read_safetensors(path, 1 << 20);
  REQUIRE(back.has_value());
  CHECK(back->metadata == std::map<std::string, std::string>{{"round", "3"}, {"run", "a \"b\""}});
  CHECK(read_safetensors(path, 100).error().code == ErrorCode::kResource);
  std::filesystem::remove_all(pattern);
  CHECK(read_safetensors(path, 1 << 20).error().code == ErrorCode::kNotFound);
}

TEST_CASE("safetensors: a file of another writer reads in the order of its data, whatever its header's") {
  const auto read =
      parse_tensors(file("{" + tensor("b", "[]", "[12,16]") + ", \"__metadata__\":{\"format\":\"pt\"},\n" +
                             tensor("a\\u00e9", "[3, 1]", "[0,12]") + "}    ",
                         kFour));
  REQUIRE_MESSAGE(read.has_value(), read.error().message);
  const auto& tensors = read->values.layout().tensors();
  REQUIRE(tensors.size() == 2);
  CHECK(tensors[0].name == "a\xc3\xa9");
  CHECK(tensors[0].shape == std::vector<std::size_t>{3, 1});
  CHECK(tensors[1].name == "b");
  CHECK(tensors[1].shape.empty());
  CHECK(read->values.values()[1] == -2.0F);
  CHECK(read->values.values()[3] == 3.0F);
  CHECK(read->metadata.at("format") == "pt");
}

TEST_CASE("safetensors: tensors are put in a model's order by name") {
  const auto read = parse_tensors(
      file("{" + tensor("dense.bias", "[1]", "[0,4]") + "," + tensor("dense.weight", "[1,3]", "[4,16]") + "}",
           kFour));
  REQUIRE(read.has_value());
  const auto model = small_model();
  const auto arranged = arrange(read->values, model.shared_layout());
  REQUIRE(arranged.has_value());
  CHECK(std::vector<float>(arranged->values().begin(), arranged->values().end()) ==
        std::vector<float>{-2.0F, 0.5F, 3.0F, 1.0F});

  const auto refused = [&](const std::string& header, const std::string& words) {
    const auto result = arrange(parse_tensors(file(header, kFour))->values, model.shared_layout());
    REQUIRE_FALSE(result.has_value());
    CHECK_MESSAGE(result.error().message.find(words) != std::string::npos, result.error().message);
  };
  refused("{" + tensor("dense.bias", "[1]", "[0,4]") + "," + tensor("dense.weight", "[3,1]", "[4,16]") + "}",
          "has shape [3, 1], but this model expects [1, 3]");
  refused("{" + tensor("dense.weight", "[4]", "[0,16]") + "}", "has shape [4]");
  refused("{" + tensor("dense.bias", "[4]", "[0,16]") + "}", "\"dense.weight\" of this model is missing");
  refused("{" + tensor("other", "[4]", "[0,16]") + "}", "\"other\" does not belong");
}

TEST_CASE("safetensors: an empty model and no metadata make the shortest file") {
  ParameterLayout layout;
  const auto header = safetensors_header(layout, {});
  REQUIRE(header.has_value());
  CHECK(*header == std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  const auto read = parse_tensors(*header);
  REQUIRE(read.has_value());
  CHECK(read->values.size() == 0);
}

TEST_CASE("safetensors: a tensor may not take the name of the metadata") {
  ParameterLayout layout;
  layout.add("__metadata__", {1});
  CHECK(safetensors_header(layout, {}).error().message.find("__metadata__") != std::string::npos);
}

TEST_CASE("safetensors: lengths that lie are refused") {
  check_refused("", ErrorCode::kCorrupt, "too short");
  check_refused("\x02\0\0", ErrorCode::kCorrupt, "too short");
  check_refused(std::string(8, '\xff') + "{}", ErrorCode::kCorrupt,
                "declares a header of 18446744073709551615 bytes");
  check_refused(std::string("\x09\0\0\0\0\0\0\0{}", 10), ErrorCode::kCorrupt, "truncated");
  check_refused(std::string(8, '\0'), ErrorCode::kCorrupt, "does not begin with {");
  check_refused(file("[]", ""), ErrorCode::kCorrupt, "does not begin with {");
}

TEST_CASE("safetensors: a header of another shape is refused where it differs") {
  const auto header = [](const std::string& text, ErrorCode code, const std::string& words) {
    check_refused(file(text, kFour), code, words);
  };
  header("{", ErrorCode::kCorrupt, "is not valid JSON");
  header("{} x", ErrorCode::kCorrupt, "is not valid JSON");
  header("{\"a\":1}", ErrorCode::kCorrupt, "contains a number in an unexpected place, after \"a\"");
  header("{\"a\":[]}", ErrorCode::kCorrupt, "contains an array");
  header("{\"a\":{\"dtype\":{}}}", ErrorCode::kCorrupt, "contains an object");
  header("{\"a\":{\"dtype\":null}}", ErrorCode::kCorrupt, "contains null");
  header("{\"a\":{\"shape\":[-1]}}", ErrorCode::kCorrupt, "a negative number");
  header("{\"a\":{\"shape\":[1.5]}}", ErrorCode::kCorrupt, "contains a float");
  header("{\"a\":{\"shape\":[1e99999]}}", ErrorCode::kCorrupt, "is not valid JSON");
  header("{\"a\":{\"shape\":[[1]]}}", ErrorCode::kCorrupt, "contains an array");
  header("{\"a\":{\"data_offsets\":[0,1,2]}}", ErrorCode::kCorrupt, "more than two data_offsets");
  header("{\"a\":{\"dtype\":\"F32\"}}", ErrorCode::kCorrupt, "lacks dtype, shape or data_offsets");
  header("{\"a\":{\"colour\":\"red\"}}", ErrorCode::kCorrupt, "unknown key \"colour\"");
  header("{\"__metadata__\":{\"a\":1}}", ErrorCode::kCorrupt, "contains a number");
  header("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", ErrorCode::kCorrupt, "the key \"a\" twice");
  header("{" + tensor("a", "[2]", "[0,8]") + "," + tensor("a", "[2]", "[8,16]") + "}", ErrorCode::kCorrupt,
         "the key \"a\" twice");
  header("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}", ErrorCode::kCorrupt, "the key \"dtype\" twice");
  header("{\"a\":{\"dtype\":\"F16\",\"shape\":[8],\"data_offsets\":[0,16]}}", ErrorCode::kUnsupported,
         "has the dtype \"F16\"; only \"F32\"");
  header("{\"\xff\":1}", ErrorCode::kCorrupt, "is not valid JSON");
}

TEST_CASE("safetensors: tensors must fill the data, without hole, overlap or overflow") {
  const auto tensors = [](const std::string& text, const std::string& words) {
    check_refused(file("{" + text + "}", kFour), ErrorCode::kCorrupt, words);
  };
  tensors(tensor("a", "[3]", "[0,12]"), "holds 16 bytes of data, but its tensors take 12");
  tensors(tensor("a", "[3]", "[4,16]"), "begins at byte 4 of the data, but the tensors before it end at 0");
  tensors(tensor("a", "[3]", "[0,12]") + "," + tensor("b", "[2]", "[8,16]"), "\"b\" begins at byte 8");
  tensors(tensor("a", "[2]", "[0,8]") + "," + tensor("b", "[2]", "[0,8]"), "begins at byte 0");
  tensors(tensor("a", "[5]", "[0,20]"), "larger than the file");
  tensors(tensor("a", "[4]", "[0,12]"), "needs 16 bytes, but its data_offsets give it 12");
  tensors(tensor("a", "[4]", "[16,0]"), "invalid data_offsets");
  tensors(tensor("a", "[4]", "[0]"), "invalid data_offsets");
  tensors(tensor("a", "[4294967296,4294967296,4]", "[0,16]"), "larger than the file");
  tensors(tensor("a", "[18446744073709551615]", "[0,16]"), "larger than the file");
  tensors(tensor("a", "[18446744073709551616]", "[0,16]"),
          "contains a float");  // beyond 64 bits JSON numbers are real
  check_refused(file("{" + tensor("a", "[4,0]", "[0,0]") + "}", kFour), ErrorCode::kUnsupported, "is empty");
}

TEST_CASE("safetensors: depth, tensors and dimensions are bounded") {
  check_refused(file("{\"a\":" + std::string(1 << 20, '['), ""), ErrorCode::kCorrupt, "contains an array");
  std::string ones = "1";
  for (int i = 0; i < 64; ++i) ones += ",1";
  check_refused(file("{\"a\":{\"shape\":[" + ones + "]}}", ""), ErrorCode::kCorrupt,
                "more than 64 dimensions");
  std::string many = "{";
  for (std::size_t i = 0; i <= kMaxSafetensorsTensors; ++i) {
    many += (i > 0 ? "," : "") + tensor(std::to_string(i), "[1]", "[0,4]");
  }
  check_refused(file(many + "}", ""), ErrorCode::kResource, "more than 16384 tensors");
}

TEST_CASE("safetensors: no damaged byte crashes the reader, and what is read fills the data") {
  const auto header = safetensors_header(small_model().layout(), {{"a", "b"}});
  const std::string whole = *header + kFour;
  Rng rng(3);
  for (int i = 0; i < 20000; ++i) {
    CAPTURE(i);
    std::string damaged = whole;
    const std::size_t edits = 1 + rng.below(3);
    for (std::size_t e = 0; e < edits; ++e)
      damaged[rng.below(damaged.size())] = static_cast<char>(rng.below(256));
    if (rng.below(4) == 0) damaged.resize(rng.below(damaged.size()));
    const auto result = parse_tensors(damaged);
    if (result.has_value()) CHECK(result->values.size() * 4 <= damaged.size());
  }
}
