#include "server/api/dashboard.h"

#include <algorithm>
#include <string>

#include "server/api/api.h"

namespace fedge::server {
namespace {

// Scripts, styles and requests only from here; no frames, no forms that leave, no inline code.
constexpr const char* kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri "
    "'none'; form-action 'none'; frame-ancestors 'none'";

HttpResponse plain_answer(int status, std::string body) {
  HttpResponse response{.status = status, .body = std::move(body)};
  response.fields.emplace_back("Content-Security-Policy", kPolicy);
  return response;
}

}  // namespace

bool is_of_dashboard(std::string_view path) { return !path.starts_with("/api/"); }

HttpResponse dashboard_answer(const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") {
    HttpResponse refused = plain_answer(405, "this path accepts only GET\n");
    refused.fields.emplace_back("Allow", "GET, HEAD");
    return refused;
  }
  if (dashboard_files().empty())
    return plain_answer(
        404,
        "this program was built without the dashboard, because esbuild was missing; the admin "
        "API is at " +
            std::string(kApiRoot) + "\n");
  const std::string path = request.path() == "/" ? "/index.html" : request.path();
  const auto file = std::ranges::find(dashboard_files(), path, &DashboardFile::path);
  if (file == dashboard_files().end())
    return plain_answer(404, "there is no such page; the dashboard is at /\n");
  HttpResponse response = plain_answer(200, std::string(file->content));
  response.content_type = file->type;
  response.fields.emplace_back("Referrer-Policy", "no-referrer");
  response.fields.emplace_back("Cross-Origin-Opener-Policy", "same-origin");
  return response;
}

}  // namespace fedge::server
