#include "server/coordinator/detail/run_queue.h"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <string>

#include "tests/support/tiny_dataset.h"

namespace fedge::server {

TEST_CASE("run queue: what is to be gone on with must be the same, and else what is another is named") {
  const test::TemporaryDirectory directory;
  boost::asio::io_context io;
  const auto queue = RunQueue::open(io, directory.path() / "runs.db");
  REQUIRE(queue);
  const auto document = [](const std::string& hash, const std::string& rounds) {
    return "[model]\nbase = \"base.safetensors\"\nbase_hash = \"" + hash + "\"\n[run]\nrounds = " + rounds +
           "\n";
  };
  const auto begun = (*queue)->submit("a", document("aa", "3"));
  REQUIRE(begun);
  const auto again = (*queue)->submit("a", document("aa", "3"));
  REQUIRE(again);
  CHECK(again->number == begun->number);
  const auto refused = [&](const std::string& text, const std::string& what) {
    const auto other = (*queue)->submit("a", text);
    REQUIRE_FALSE(other);
    CHECK(other.error().code == ErrorCode::kRefused);
    CHECK(
        other.error().message ==
        "run 1 (a) has not ended, and its " + what +
            " differs from the given one; continue with its own run file, or end the run: fedge run stop 1");
  };
  refused(document("aa", "4"), "run file");
  refused(document("bb", "3"), "model.base");
  refused(document("bb", "4"), "run file");
  refused("", "run file");
}

}  // namespace fedge::server
