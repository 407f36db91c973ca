// A model whose frozen matrices a client keeps in fewer bits (model.base_dtype), read from its chunks.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "client/task_files.h"
#include "core/rng.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

using learn::BaseDtype;
using learn::CompactWeights;
using test::TemporaryDirectory;

constexpr std::uint32_t kChunk = 4096;  // no multiple of a row or of a group from any matrix's beginning

std::shared_ptr<const ParameterLayout> base_layout() {
  auto result = std::make_shared<ParameterLayout>();
  result->add("gain", {13}, {.trainable = false})
      .add("first", {50, 70}, {.trainable = false})
      .add("bias", {70}, {.trainable = false})
      .add("second", {30, 90}, {.trainable = false})
      .add("adapters", {2, 160}, {.order = TensorOrder::kRankMajor});
  return result;
}

std::vector<float> base_of(BaseDtype dtype) {
  Rng rng(5);
  std::vector<float> values(base_layout()->size());
  for (float& value : values) value = static_cast<float>(rng.normal());
  learn::round_base(*base_layout(), dtype, values);
  return values;
}

// A client's files with this model.
struct Files {
  explicit Files(const std::vector<float>& model) {
    auto opened = TaskFiles::open(state.path(), 1 << 20);
    REQUIRE(opened);
    files = std::move(*opened);
    const auto manifest = protocol::make_manifest(base_layout()->hash(), Coverage::all(model.size()),
                                                  std::as_bytes(std::span(model)), kChunk);
    auto offered = files->download(*base_layout(), {manifest, std::nullopt, manifest.coverage});
    REQUIRE(offered);
    download = std::move(*offered);
    for (std::size_t i = 0; i < manifest.chunk_count(); ++i)
      REQUIRE(download.model->write(
          i, std::as_bytes(std::span(model)).subspan(i * kChunk, manifest.chunk_length(i))));
  }
  TemporaryDirectory state;
  std::unique_ptr<TaskFiles> files;
  TaskFiles::Download download;
};

bool equal_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace

TEST_CASE("base files: matrices are read into fewer bits, the rest as it is") {
  for (const BaseDtype dtype : {BaseDtype::kBfloat16, BaseDtype::kInt8}) {
    const std::vector<float> model = base_of(dtype);
    const Files client(model);
    REQUIRE(client.download.model->manifest().chunk_count() > 5);
    CompactWeights base(base_layout(), dtype);
    const auto rest = client.files->load(client.download.model, base_layout(), client.download.wanted, &base);
    REQUIRE_MESSAGE(rest, rest.error().message);
    const auto layout = base_layout();
    for (const TensorInfo& tensor : layout->tensors()) {
      CAPTURE(tensor.name);
      const auto expected = std::span(model).subspan(tensor.offset, tensor.size);
      if (!CompactWeights::holds(tensor)) {
        CHECK(equal_bits(rest->tensor(tensor), expected));
        continue;
      }
      CHECK(equal_bits(rest->tensor(tensor), std::vector<float>(tensor.size)));
      std::vector<float> values(tensor.size);
      base.expand({tensor.offset, tensor.offset + tensor.size}, values.data());
      CHECK(equal_bits(values, expected));
    }
  }
}

TEST_CASE("base files: a coordinator's model of another type is refused, and a damaged one is not kept") {
  const std::vector<float> exact = base_of(BaseDtype::kFloat32);
  for (const BaseDtype dtype : {BaseDtype::kBfloat16, BaseDtype::kInt8}) {
    const Files client(exact);
    CompactWeights base(base_layout(), dtype);
    const auto rest = client.files->load(client.download.model, base_layout(), client.download.wanted, &base);
    REQUIRE_FALSE(rest);
    CHECK(rest.error().code == ErrorCode::kInvalid);
    CHECK_MESSAGE(rest.error().message.starts_with("first["), rest.error().message);
    CHECK(client.download.model->complete());
  }
  Files client(base_of(BaseDtype::kInt8));
  for (const auto& entry : std::filesystem::directory_iterator(chunk_cache(client.state.path()))) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096 + 3 * kChunk);  // chunk 3, after the file's header
    file.write("\x7f\x7f\x7f\x7f", 4);
  }
  CompactWeights base(base_layout(), BaseDtype::kInt8);
  const auto rest = client.files->load(client.download.model, base_layout(), client.download.wanted, &base);
  REQUIRE_FALSE(rest);
  CHECK(rest.error().code == ErrorCode::kCorrupt);
}

}  // namespace fedge::client
