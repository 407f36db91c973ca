#include "server/admin/pages.h"

#include "core/text.h"

namespace fedge::server {

void PageService::serve(HttpRequest request, HttpAnswer answer) {
  const auto page = pages_.find(request.path());
  if (page == pages_.end())
    return answer({.status = 404, .body = "there is no such page; try /metrics, /healthz or /readyz\n"});
  if (request.method != "GET" && request.method != "HEAD")
    return answer({.status = 405,
                   .body = "this server answers only GET and HEAD\n",
                   .fields = {{"Allow", "GET, HEAD"}}});
  answer(page->second(request));
}

PageService::Pages coordinator_pages(CoordinatorMetrics& metrics) {
  PageService::Pages pages;
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
