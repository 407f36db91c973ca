// Ids of OpenTelemetry traces and spans. Both sides derive them from what they know, so no message carries
// them, and a restarted coordinator gives a span the same id again. Pure. Cost: one SHA-256 an id.
//   trace = first 16 bytes of SHA-256("fedge trace\nKIND\nRUN\nNUMBER"), where KIND is round, statistics or
//           buffer, RUN the run's id as 16 hexadecimal digits, and NUMBER a decimal number;
//   span  = first 8 bytes of SHA-256("fedge span\nTRACE\nNAME\nKIND\nTRACK\nCLIENT\nATTEMPT"), where KIND is
//           the number of the TaskKind, and CLIENT may be empty.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/ids.h"

namespace fedge {

// Returns the trace to which this task belongs, as 32 hexadecimal digits: that of its round, or that of an
// attempt at the statistics. In an asynchronous run, tasks with equal numbers share a trace.
std::string trace_of(RunId run, TaskId task);
// Returns the trace of a buffer of an asynchronous run.
std::string trace_of_buffer(RunId run, RoundNumber buffer);

struct SpanKey {
  std::string_view name;
  TaskId task = {};  // its kind and track
  std::optional<ClientId> client = {};
  std::uint32_t attempt = 0;  // of a secure sum
};
// Returns 16 hexadecimal digits.
std::string span_of(const std::string& trace, const SpanKey& key);

}  // namespace fedge
