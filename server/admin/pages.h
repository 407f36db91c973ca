// The coordinator's admin pages: /metrics for Prometheus, /healthz for supervisors, /readyz for load
// balancers. They have no users, so their address must be reachable only from this machine or the operators'
// network.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "server/admin/coordinator_metrics.h"
#include "server/http/http.h"

namespace fedge::server {

// Answers GET and HEAD of some paths at once.
class PageService final : public HttpService {
 public:
  using Pages = std::map<std::string, std::function<HttpResponse(const HttpRequest&)>>;  // by path
  explicit PageService(Pages pages) : pages_(std::move(pages)) {}

  std::variant<HttpAdmission, HttpResponse> admit(const HttpRequest&) override { return HttpAdmission{}; }
  void serve(HttpRequest request, HttpAnswer answer) override;

 private:
  Pages pages_;
};

// The coordinator must already listen. `metrics` must outlive the pages.
PageService::Pages coordinator_pages(CoordinatorMetrics& metrics);

}  // namespace fedge::server
