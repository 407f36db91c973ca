#include "server/http/http.h"

#include <algorithm>
#include <array>

namespace fedge::server {
namespace {

struct Phrase {
  int status;
  const char* text;
};
constexpr std::array kPhrases = {Phrase{200, "OK"},
                                 Phrase{201, "Created"},
                                 Phrase{204, "No Content"},
                                 Phrase{304, "Not Modified"},
                                 Phrase{400, "Bad Request"},
                                 Phrase{401, "Unauthorized"},
                                 Phrase{403, "Forbidden"},
                                 Phrase{404, "Not Found"},
                                 Phrase{405, "Method Not Allowed"},
                                 Phrase{409, "Conflict"},
                                 Phrase{411, "Length Required"},
                                 Phrase{412, "Precondition Failed"},
                                 Phrase{413, "Content Too Large"},
                                 Phrase{415, "Unsupported Media Type"},
                                 Phrase{422, "Unprocessable Content"},
                                 Phrase{428, "Precondition Required"},
                                 Phrase{429, "Too Many Requests"},
                                 Phrase{431, "Request Header Fields Too Large"},
                                 Phrase{500, "Internal Server Error"},
                                 Phrase{503, "Service Unavailable"},
                                 Phrase{505, "HTTP Version Not Supported"},
                                 Phrase{507, "Insufficient Storage"}};

}  // namespace

const char* phrase_of(int status) {
  const auto* known = std::ranges::find(kPhrases, status, &Phrase::status);
  return known == kPhrases.end() ? "Error" : known->text;
}

namespace {

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

}  // namespace

std::string HttpRequest::query() const {
  const std::size_t mark = target.find('?');
  return mark == std::string::npos ? std::string() : target.substr(mark + 1);
}

const std::string* HttpRequest::field(std::string_view name) const {
  const auto named = [&](const auto& one) { return one.first == name; };
  const auto found = std::ranges::find_if(fields, named);
  if (found == fields.end() || std::ranges::find_if(found + 1, fields.end(), named) != fields.end())
    return nullptr;
  return &found->second;
}

std::string head_of(const HttpResponse& response, const ResponseForm& form) {
  std::string bytes =
      "HTTP/1.1 " + std::to_string(response.status) + " " + phrase_of(response.status) + "\r\n";
  const auto field = [&](const std::string& name, const std::string& value) {
    bytes.append(name).append(": ").append(value).append("\r\n");
  };
  field("Content-Type", response.content_type);
  if (form.length) field("Content-Length", std::to_string(*form.length));
  field("Cache-Control", "no-store");
  field("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.fields) field(name, value);
  field("Connection", form.keep_alive ? "keep-alive" : "close");
  return bytes + "\r\n";
}

std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      decoded += ' ';
    } else if (text[i] != '%') {
      decoded += text[i];
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = digit(text[i + 1]);
      const int low = digit(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return decoded;
}

}  // namespace fedge::server
