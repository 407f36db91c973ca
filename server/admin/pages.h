// The coordinator's admin pages: /metrics for Prometheus, /healthz and /readyz for whoever restarts it or
// sends clients to it.
#pragma once

#include "server/admin/coordinator_metrics.h"
#include "server/admin/http.h"

namespace fedge::server {

// For a coordinator that listens already. `metrics` must outlive the pages.
HttpPages coordinator_pages(CoordinatorMetrics& metrics);

}  // namespace fedge::server
