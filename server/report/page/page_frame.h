// Beginning and end of a self-contained page. Its style and script are inside, and its content security
// policy names them by hash and forbids everything else: the page contacts no host, and text from outside
// cannot become script.
#pragma once

#include <string>
#include <string_view>

namespace fedge::server {

// Up to the content of <main>.
std::string page_begin(const std::string& title);
std::string page_end();

// The text with & < > " ' as entities, for content and attribute values.
std::string escape_html(std::string_view text);

}  // namespace fedge::server
