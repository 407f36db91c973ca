// Traces as the JSON of OTLP/HTTP: the JSON mapping of the protobuf message ExportTraceServiceRequest, in
// which ids are hexadecimal and 64-bit numbers are strings (opentelemetry.io/docs/specs/otlp, version 1).
// Exports numbers of clients, never their names, and no text that a client has written.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "server/traces/trace_part.h"

namespace fedge::server {

// Describes the process that exports.
struct TraceResource {
  std::string version;   // service.version
  std::string instance;  // service.instance.id
};

std::string encode_traces(const TraceResource& resource, const std::vector<TracePart>& parts);

// The answer of a collector that accepted a request: how many spans it has rejected, and why.
struct PartialSuccess {
  std::size_t rejected = 0;
  std::string reason = {};
};
// Returns no rejection for an answer that cannot be read.
PartialSuccess parse_partial_success(const std::string& body);

}  // namespace fedge::server
