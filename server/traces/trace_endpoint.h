// TraceEndpoint: where a collector accepts traces over OTLP/HTTP.
#pragma once

#include <string>

#include "core/result.h"
#include "protocol/session/endpoint.h"

namespace fedge::server {

struct TraceEndpoint {
  protocol::Address address;
  std::string target;  // path of the request: "/v1/traces"
};

// Parses the base address of a collector, "http://HOST:PORT" or "http://HOST:PORT/PATH". The path v1/traces
// is appended to it, as the specification of OTLP says.
Result<TraceEndpoint> parse_trace_endpoint(const std::string& url);

}  // namespace fedge::server
