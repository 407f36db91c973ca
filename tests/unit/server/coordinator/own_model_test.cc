// A run whose model a program registers is opened by the coordinator: a failure of the model is an error of
// the run, not the end of the process.
#include <doctest/doctest.h>

#include <string>

#include "server/coordinator/run_parts.h"
#include "server/data_directory.h"
#include "server/store/sqlite_store.h"
#include "tests/support/own/kinds.h"
#include "tests/unit/learn/idx_fixture.h"

using namespace fedge;
using namespace fedge::server;

TEST_CASE(
    "own model: a failure in its initial parameters refuses the run, whatever else the coordinator does") {
  test::register_own_kinds();
  for (const char* fault : {"make", "initialise", "initial nan", ""}) {
    CAPTURE(fault);
    const learn::test::TemporaryDirectory directory;
    RunRecord record =
        new_run("own", std::string("[data]\ndataset = \"own_samples\"\npartition = { clients = 2 }\n") +
                           "[model]\nkind = \"own_bias\"\nfault = \"" + fault +
                           "\"\n[sampling]\nclients_per_round = 2\n");
    const auto store = open_sqlite_store(run_store_path(directory.path()));
    REQUIRE(store);
    const auto number = (*store)->submit(record);
    REQUIRE(number);
    record.number = *number;
    const auto parts = open_run(directory.path(), record, 1);
    CHECK(parts.has_value() == std::string(fault).empty());
    if (parts) continue;
    CHECK(parts.error().code == ErrorCode::kInvalid);
    CHECK_MESSAGE(parts.error().message.find("the model own_bias") != std::string::npos,
                  parts.error().message);
  }
}
