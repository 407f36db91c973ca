// The coordinator's admin pages: /metrics for Prometheus, /healthz for supervisors, /readyz for load
// balancers.
#pragma once

#include "server/admin/coordinator_metrics.h"
#include "server/admin/http.h"

namespace fedge::server {

// The coordinator must already listen. `metrics` must outlive the pages.
HttpPages coordinator_pages(CoordinatorMetrics& metrics);

}  // namespace fedge::server
