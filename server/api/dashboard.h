// The dashboard's files, which the build has put into the program (web/). None without esbuild at build time.
#pragma once

#include <span>
#include <string_view>

#include "server/http/http.h"

namespace fedge::server {

struct DashboardFile {
  std::string_view path;  // "/app.js"
  std::string_view type;  // its Content-Type
  std::string_view content;
};
// Generated at build time.
std::span<const DashboardFile> dashboard_files();

// Whether this path is one of the dashboard, not of the admin API.
bool is_of_dashboard(std::string_view path);
// Answers a request for such a path. Needs no access token: the files hold no data.
HttpResponse dashboard_answer(const HttpRequest& request);

}  // namespace fedge::server
