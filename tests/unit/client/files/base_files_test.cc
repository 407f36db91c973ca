// A model whose frozen matrices a client keeps in fewer bits (model.base_dtype), read from its chunks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "client/prepared_run.h"
#include "client/task_files.h"
#include "core/config/document.h"
#include "core/rng.h"
#include "learn/models/adapters.h"
#include "protocol/chunks/chunk_selection.h"
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

// A client's files with this model, as far as it is needed.
struct Files {
  explicit Files(const std::vector<float>& model)
      : Files(*base_layout(), model, Coverage::all(model.size())) {}
  Files(const ParameterLayout& layout, const std::vector<float>& model, const Coverage& needed) {
    auto opened = TaskFiles::open(state.path(), 1 << 20);
    REQUIRE(opened);
    files = std::move(*opened);
    manifest = protocol::make_manifest(layout.hash(), Coverage::all(model.size()),
                                       std::as_bytes(std::span(model)), kChunk);
    download = offered(layout, needed);
    for (std::size_t i = 0; i < manifest.chunk_count(); ++i)
      if (download.wanted[i])
        REQUIRE(download.model->write(
            i, std::as_bytes(std::span(model)).subspan(i * kChunk, manifest.chunk_length(i))));
  }
  TaskFiles::Download offered(const ParameterLayout& layout, const Coverage& needed) const {
    auto offered = files->download(layout, {manifest, std::nullopt, needed});
    REQUIRE(offered);
    return std::move(*offered);
  }
  TemporaryDirectory state;
  std::unique_ptr<TaskFiles> files;
  protocol::Manifest manifest;
  TaskFiles::Download download;
};

// Device 2 of a run over texts of its own: a small Llama model with adapters.
struct TextDevice {
  explicit TextDevice(const std::string& dtype) {
    Rng rng(4);
    std::string text;
    while (text.size() < 3000) text += static_cast<char>('a' + rng.below(20));
    texts.write("own.txt", {text.begin(), text.end()});
    const std::string task =
        "[data]\ndataset = \"text\"\nname = \"notes\"\ncontext = 16\n"
        "partition = { kind = \"own\", clients = 4 }\n[model]\nkind = \"llama\"\nlayers = 2\nwidth = 32\n"
        "heads = 2\nadapter = { rank = 2 }\nbase_dtype = \"" +
        dtype + "\"\n[training]\nlocal_steps = 3\nbatch_size = 8\n";
    const auto document = config::parse_toml(task, "run");
    REQUIRE(document);
    config::Reader root(document->root, "", "run");
    const auto plain = learn::Task::build_without_data(read_work(root).task, 5, ClientId(2));
    REQUIRE_MESSAGE(plain, plain.error().message);
    auto prepared = prepare_run(
        {.run = RunId(1), .name = "r", .seed = 5, .task = task, .layout = (*plain)->model().layout()->hash()},
        {.client = ClientId(2),
         .state_directory = state.path(),
         .data_directories = {{"notes", texts.path().string()}}});
    REQUIRE_MESSAGE(prepared, prepared.error().message);
    run = std::move(*prepared);
  }
  WorkResult work(TaskKind kind, const LoadedModel& loaded) const {
    const learn::Model& model = run->task->model();
    protocol::TrainRequest request{
        .run = RunId(1), .round = RoundNumber(1), .coverage = model.layout()->trainable(), .kind = kind};
    request.model.chunk_size = kChunk;
    auto result = work_on(*run, {.client = ClientId(2), .request = request, .loaded = loaded});
    REQUIRE_MESSAGE(result, result.error().message);
    return std::move(*result);
  }
  TemporaryDirectory texts, state;
  std::shared_ptr<PreparedRun> run;
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
  client.download = {};
  const auto again = client.offered(*base_layout(), client.manifest.coverage);
  CHECK(again.model->has(2));
  CHECK(!again.model->has(3));
}

TEST_CASE("base files: where only the first matrices are needed, those are read") {
  const std::vector<float> model = base_of(BaseDtype::kInt8);
  const auto layout = base_layout();
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
    CHECK(exact.run->base_dtype == BaseDtype::kFloat32);
    CHECK(compact.run->base_dtype == dtype);
    const auto& layout = compact.run->task->model().layout();
    std::vector<float> model(layout->size());
    compact.run->task->model().initialise(model, Rng(1));
    learn::round_base(*layout, dtype, model);
    const Files client(*layout, model, Coverage::all(model.size()));
    const auto whole = load_model(*exact.run, *client.files, client.download);
    const auto loaded = load_model(*compact.run, *client.files, client.download);
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

}  // namespace fedge::client
