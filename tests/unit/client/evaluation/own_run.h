// A device with a table of its own, on which runs are prepared as client 2.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "client/prepared_run.h"
#include "core/config/document.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::client {

struct OwnDevice {
  // The device has its data under the name "vitals".
  Result<std::shared_ptr<PreparedRun>> prepare(const std::string& text, bool evaluates = true,
                                               bool counts = true) const {
    const auto document = config::parse_toml(text, "run");
    REQUIRE(document);
    config::Reader root(document->root, "", "run");
    const auto task = learn::Task::build_without_data(read_work(root).task, 5, ClientId(2));
    REQUIRE_MESSAGE(task, task.error().message);
    return prepare_run(
        {.run = RunId(1), .name = "r", .seed = 5, .task = text, .layout = (*task)->model().layout()->hash()},
        {.client = ClientId(2),
         .state_directory = state.path(),
         .data_directories = {{"vitals", (file.path() / "v.csv").string()}},
         .evaluates = evaluates,
         .counts = counts});
  }

  test::TemporaryDirectory file, state;
};

}  // namespace fedge::client
