// Clients whose files have a model with frozen matrices.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
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

namespace fedge::client::base {

using learn::BaseDtype;
using learn::CompactWeights;
using test::TemporaryDirectory;

constexpr std::uint32_t kChunk = 4096;  // no multiple of a row or of a group from any matrix's beginning

inline std::shared_ptr<const ParameterLayout> layout_of_bases() {
  auto result = std::make_shared<ParameterLayout>();
  result->add("gain", {13}, {.trainable = false})
      .add("first", {50, 70}, {.trainable = false})
      .add("bias", {70}, {.trainable = false})
      .add("second", {30, 90}, {.trainable = false})
      .add("adapters", {2, 160}, {.order = TensorOrder::kRankMajor});
  return result;
}

inline std::vector<float> base_of(BaseDtype dtype, std::uint64_t seed = 5) {
  Rng rng(seed);
  std::vector<float> values(layout_of_bases()->size());
  for (float& value : values) value = static_cast<float>(rng.normal());
  learn::round_base(*layout_of_bases(), dtype, values);
  return values;
}

// A client's files with this model, as far as it is needed.
struct Files {
  explicit Files(const std::vector<float>& model)
      : Files(*layout_of_bases(), model, Coverage::all(model.size())) {}
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
  explicit TextDevice(const std::string& dtype, const std::filesystem::path& shared = {}) {
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
         .data_directories = {{"notes", texts.path().string()}},
         .shared_bases = shared});
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

inline bool equal_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

}  // namespace fedge::client::base
