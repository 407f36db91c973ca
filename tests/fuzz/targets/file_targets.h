// Fuzz targets of files: safetensors, run files, policies, lines of metrics.jsonl and tables of BPE merges.
// Accepted input must be accepted again after it was written, with the same meaning.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

#include "aggregation/tracks/policy.h"
#include "core/check.h"
#include "core/config/document.h"
#include "core/safetensors.h"
#include "learn/spec.h"
#include "learn/text/bpe_table.h"
#include "learn/text/tokenizer.h"
#include "run/run_config.h"
#include "server/report/metrics.h"
#include "server/report/metrics_csv.h"
#include "tests/support/safetensors_bytes.h"

namespace fedge::fuzz {

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <class T>
bool is_refused(const Result<T>& result) {
  if (result) return false;
  FEDGE_CHECK(!result.error().message.empty(), "an error says what is wrong");
  FEDGE_CHECK(result.error().message.size() < 10'000, "an error repeats the whole input");
  return true;
}

// The tensors must fill the bytes behind the header completely.
inline void feed_safetensors(std::span<const std::byte> bytes) {
  const auto file = test::parse_safetensors(bytes, "fuzz");
  const auto alone = parse_safetensors_header(bytes, "fuzz");
  FEDGE_CHECK(file.has_value() == alone.has_value(), "header and file are judged apart");
  if (is_refused(file)) return;
  FEDGE_CHECK(alone->layout.hash() == file->values.layout().hash(), "the header has another layout");
  const auto values = file->values.bytes();
  FEDGE_CHECK(values.size() < bytes.size() && std::ranges::equal(values, bytes.last(values.size())),
              "the values are not the file's");
  const auto header = safetensors_header(file->values.layout(), file->metadata);
  if (is_refused(header)) return;  // the rewritten JSON is too long
  std::string written = *header;
  written.append(reinterpret_cast<const char*>(values.data()), values.size());
  const auto again = test::parse_safetensors(std::as_bytes(std::span(written)), "fuzz");
  FEDGE_CHECK(again.has_value(), again ? "" : again.error().message);
  FEDGE_CHECK(again->metadata == file->metadata, "metadata change");
  FEDGE_CHECK(again->values.layout().hash() == file->values.layout().hash(), "the layout changes");
  FEDGE_CHECK(std::ranges::equal(again->values.bytes(), values), "values change");
}

// An accepted run is stored as its canonical text and sent to clients as its task text.
inline void feed_run_file(std::span<const std::byte> bytes) {
  const auto document = config::parse_toml(text_of(bytes), "fuzz.toml");
  if (is_refused(document)) return;
  const auto run = run::read_run_config(*document);
  if (is_refused(run)) return;
  const auto kept = config::parse_toml(run->canonical, "kept");
  FEDGE_CHECK(kept.has_value(), kept ? "" : kept.error().message);
  const auto again = run::read_run_config(*kept);
  FEDGE_CHECK(again.has_value(), again ? "" : again.error().message);
  FEDGE_CHECK(
      again->canonical == run->canonical && again->id == run->id && again->task_text == run->task_text,
      "a run changes when it is kept");
  const auto told = config::parse_toml(run->task_text, "task");
  FEDGE_CHECK(told.has_value(), told ? "" : told.error().message);
  config::Reader root(told->root, "", "task");
  const learn::TaskSpec task = learn::read_task(root);
  root.ignore("compression");
  root.ignore("status");
  const auto understood = root.finish();
  FEDGE_CHECK(understood.has_value(), understood ? "" : understood.error().message);
  FEDGE_CHECK(task.data.partition.clients == run->task.data.partition.clients, "clients read another task");
}

// The policy's canonical text gives the same policy.
inline void feed_policy(std::span<const std::byte> bytes) {
  const auto document = config::parse_toml(text_of(bytes), "policy.toml");
  if (is_refused(document)) return;
  const auto policy = aggregation::read_policy(*document);
  if (is_refused(policy)) return;
  const std::string text = aggregation::to_toml(*policy);
  if (text.size() > config::kMaxDocumentBytes) return;
  const auto kept = config::parse_toml(text, "kept");
  FEDGE_CHECK(kept.has_value(), kept ? "" : kept.error().message);
  const auto again = aggregation::read_policy(*kept);
  FEDGE_CHECK(again.has_value(), again ? "" : again.error().message);
  FEDGE_CHECK(*again == *policy, "a policy changes when it is kept");
  FEDGE_CHECK(aggregation::to_toml(*again) == text, "a policy has two texts");
}

inline void feed_round_metrics(std::span<const std::byte> bytes) {
  const auto round = server::parse_metrics(text_of(bytes), "metrics.jsonl:1");
  if (is_refused(round)) return;
  const std::string line = server::to_json(*round);
  FEDGE_CHECK(line.find('\n') == std::string::npos, "a round has two lines");
  const auto again = server::parse_metrics(line, "kept");
  FEDGE_CHECK(again.has_value(), again ? "" : again.error().message);
  FEDGE_CHECK(server::to_json(*again) == line, "a round changes when it is kept");
  (void)server::to_csv(*round, server::columns_of(std::span(&*round, 1)), {});
  (void)server::tracks_csv({&*round, 1}, {});
}

// A table has one text form, and its tokenizer loses nothing.
inline void feed_bpe_table(std::span<const std::byte> bytes) {
  const std::string text = text_of(bytes);
  const auto table = learn::parse_bpe_table(text);
  const auto tokenizer = learn::Tokenizer::bpe(text);
  FEDGE_CHECK(table.has_value() == tokenizer.has_value(), "table and tokenizer are judged apart");
  if (is_refused(table)) return;
  FEDGE_CHECK(learn::bpe_table_text(*table) == text, "a table has two texts");
  FEDGE_CHECK(tokenizer->vocabulary() == table->tokens.size(), "tokens are lost");
  const auto tokens = tokenizer->encode(text);
  FEDGE_CHECK(tokens.size() <= text.size(), "merging makes more");
  FEDGE_CHECK(tokenizer->decode(tokens) == text, "text is lost");
}

}  // namespace fedge::fuzz
