#include <doctest/doctest.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/targets/file_targets.h"
#include "tests/fuzz/targets/hello_targets.h"
#include "tests/fuzz/targets/http_targets.h"
#include "tests/fuzz/targets/name_targets.h"
#include "tests/fuzz/targets/split_targets.h"
#include "tests/fuzz/targets/token_targets.h"

using namespace fedge;
using fuzz::replay;

TEST_CASE("fuzz corpus: every recorded safetensors file is refused, or its values are those of the file") {
  CHECK(replay("safetensors", fuzz::feed_safetensors) >= 15);
}

TEST_CASE(
    "fuzz corpus: every recorded run file is refused, or means the same to clients and when it is kept") {
  CHECK(replay("run_file", fuzz::feed_run_file, fuzz::Cuts::kNone) >= 25);
}

TEST_CASE("fuzz corpus: every recorded message of split training is refused, or has one answer") {
  CHECK(replay("split_server", fuzz::feed_split_server) >= 20);
}

TEST_CASE("fuzz corpus: every recorded policy is refused, or is the same when it is kept") {
  CHECK(replay("policy_file", fuzz::feed_policy, fuzz::Cuts::kNone) >= 15);
}

TEST_CASE("fuzz corpus: every recorded line of metrics is refused, or is the same when it is kept") {
  CHECK(replay("round_metrics", fuzz::feed_round_metrics) >= 15);
}

TEST_CASE("fuzz corpus: every recorded table of merges is refused, or has one text and loses none") {
  CHECK(replay("bpe_table", fuzz::feed_bpe_table) >= 15);
}

TEST_CASE("fuzz corpus: every recorded name stays within its cell, its page, its log line and its JSON") {
  CHECK(replay("names", fuzz::feed_names) >= 15);
}

TEST_CASE(
    "fuzz corpus: of every recorded greeting only an enrolled key's is let in, and each has one answer") {
  CHECK(replay("hello", fuzz::feed_hello, fuzz::Cuts::kNone) >= 30);
}

TEST_CASE("fuzz corpus: every recorded HTTP stream is read alike whole and in pieces") {
  CHECK(replay("http_request", fuzz::feed_http) >= 20);
}

TEST_CASE("fuzz corpus: of every recorded token only what the owner of a key has signed counts") {
  CHECK(replay("signed_token", fuzz::feed_signed_token) >= 15);
}
