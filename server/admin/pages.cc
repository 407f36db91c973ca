#include "server/admin/pages.h"

#include "core/text.h"

namespace fedge::server {

HttpPages coordinator_pages(CoordinatorMetrics& metrics) {
  HttpPages pages;
  pages["/metrics"] = [&metrics](const HttpRequest&) {
    return HttpResponse{.body = metrics.text(), .content_type = "text/plain; version=0.0.4; charset=utf-8"};
  };
  // Answering is the check: the same thread drives the runs.
  pages["/healthz"] = [](const HttpRequest&) { return HttpResponse{.body = "alive\n"}; };
  pages["/readyz"] = [&metrics](const HttpRequest&) {
    const auto fit = metrics.check_ready();
    if (fit) return HttpResponse{.body = "ready\n"};
    constexpr std::size_t kMaxReason = 1000;
    return HttpResponse{.status = 503, .body = clean_text(fit.error().message, kMaxReason) + "\n"};
  };
  return pages;
}

}  // namespace fedge::server
