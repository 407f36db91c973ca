// A model whose frozen matrices a client keeps in fewer bits (model.base_dtype), read from its chunks.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/client/files/base_fixture.h"

namespace fedge::client::base {

TEST_CASE("base files: matrices are read into fewer bits, the rest as it is") {
  for (const BaseDtype dtype : {BaseDtype::kBfloat16, BaseDtype::kInt8}) {
    const std::vector<float> model = base_of(dtype);
    const Files client(model);
    REQUIRE(client.download.model->manifest().chunk_count() > 5);
    CompactWeights base(layout_of_bases(), dtype);
    const auto rest =
        client.files->load(client.download.model, layout_of_bases(), client.download.wanted, &base);
    REQUIRE_MESSAGE(rest, rest.error().message);
    const auto layout = layout_of_bases();
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
    CompactWeights base(layout_of_bases(), dtype);
    const auto rest =
        client.files->load(client.download.model, layout_of_bases(), client.download.wanted, &base);
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
  CompactWeights base(layout_of_bases(), BaseDtype::kInt8);
  const auto rest =
      client.files->load(client.download.model, layout_of_bases(), client.download.wanted, &base);
  REQUIRE_FALSE(rest);
  CHECK(rest.error().code == ErrorCode::kCorrupt);
  client.download = {};
  const auto again = client.offered(*layout_of_bases(), client.manifest.coverage);
  CHECK(again.model->has(2));
  CHECK(!again.model->has(3));
}

TEST_CASE("base files: where only the first matrices are needed, those are read") {
  const std::vector<float> model = base_of(BaseDtype::kInt8);
  const auto layout = layout_of_bases();
  const TensorInfo& first = *layout->find("first");
  const Files client(*layout, model, Coverage::of({{0, first.offset + first.size}}));
  REQUIRE(std::ranges::count(client.download.wanted, false) > 1);
  CompactWeights base(layout, BaseDtype::kInt8);
  REQUIRE(client.files->load(client.download.model, layout, client.download.wanted, &base));
  std::vector<float> values(first.size);
  base.expand({first.offset, first.offset + first.size}, values.data());
  CHECK(equal_bits(values, std::span(model).subspan(first.offset, first.size)));
}

TEST_CASE("base files: a device keeps the base as the run says, and works as one that keeps float32") {
  for (const auto& [name, dtype] :
       {std::pair{"bfloat16", BaseDtype::kBfloat16}, std::pair{"int8", BaseDtype::kInt8}}) {
    CAPTURE(name);
    const TextDevice exact("float32");
    const TextDevice compact(name);
    CHECK(exact.run->base.dtype == BaseDtype::kFloat32);
    CHECK(compact.run->base.dtype == dtype);
    const auto& layout = compact.run->task->model().layout();
    std::vector<float> model(layout->size());
    compact.run->task->model().initialise(model, Rng(1));
    learn::round_base(*layout, dtype, model);
    const Files client(*layout, model, Coverage::all(model.size()));
    const auto whole = load_model(layout, exact.run->base, *client.files, client.download);
    const auto loaded = load_model(layout, compact.run->base, *client.files, client.download);
    REQUIRE((whole && loaded));
    CHECK_FALSE((*whole)->base);
    REQUIRE((*loaded)->base);
    for (const TensorInfo& tensor : layout->tensors())
      if (CompactWeights::holds(tensor))
        CHECK(equal_bits((*loaded)->model.tensor(tensor), std::vector<float>(tensor.size)));
    const WorkResult expected = exact.work(TaskKind::kTraining, **whole);
    const WorkResult trained = compact.work(TaskKind::kTraining, **loaded);
    CHECK(expected.norm > 0);
    CHECK(equal_bits(trained.values.span(), expected.values.span()));
    CHECK(compact.work(TaskKind::kEvaluation, **loaded).sums ==
          exact.work(TaskKind::kEvaluation, **whole).sums);
  }
}

}  // namespace fedge::client::base
