#include "core/tracing/trace_id.h"

#include <array>
#include <cstdio>
#include <span>

#include "core/crypto/sha256.h"

namespace fedge {
namespace {

std::string first_bytes(const std::string& text, std::size_t count) {
  const Digest digest = sha256(text);
  return to_hex(std::span(digest).first(count));
}

std::string trace_of_kind(const char* kind, RunId run, RoundNumber number) {
  std::array<char, 17> id{};
  std::snprintf(id.data(), id.size(), "%016llx", static_cast<unsigned long long>(run.value()));
  return first_bytes(
      std::string("fedge trace\n") + kind + "\n" + id.data() + "\n" + std::to_string(number.value()), 16);
}

}  // namespace

std::string trace_of(RunId run, TaskId task) {
  return trace_of_kind(task.kind == TaskKind::kStatistics ? "statistics" : "round", run, task.round);
}

std::string trace_of_buffer(RunId run, RoundNumber buffer) { return trace_of_kind("buffer", run, buffer); }

std::string span_of(const std::string& trace, const SpanKey& key) {
  std::string text = "fedge span\n" + trace + "\n" + std::string(key.name);
  text += "\n" + std::to_string(static_cast<unsigned>(key.task.kind));
  text += "\n" + std::to_string(key.task.track.value());
  text += "\n" + (key.client ? std::to_string(key.client->value()) : std::string());
  return first_bytes(text + "\n" + std::to_string(key.attempt), 8);
}

}  // namespace fedge
