#include "server/report/page/page_frame.h"

#include <array>
#include <cstdint>
#include <span>

#include "core/crypto/sha256.h"
#include "server/report/page/page_assets.h"

namespace fedge::server {
namespace {

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) group = group << 8 | (i + j < bytes.size() ? bytes[i + j] : 0U);
    for (std::size_t j = 0; j < 4; ++j) {
      out += i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63];
    }
  }
  return out;
}

}  // namespace

std::string page_begin(const std::string& title) {
  const std::string policy = "default-src 'none'; style-src 'sha256-" + base64(sha256(kReportStyle)) +
                             "' 'sha256-" + base64(sha256(kFigureStyle)) + "'; script-src 'sha256-" +
                             base64(sha256(kReportScript)) + "'; base-uri 'none'";
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
         policy + "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>" +
         escape_html(title) + "</title>\n<style>" + std::string(kReportStyle) +
         "</style></head>\n<body><main>\n";
}

std::string page_end() {
  return "<footer>Written by Fedge. Bytes are decimal: 1 MB is 1,000,000 bytes.</footer></main>\n<script>" +
         std::string(kReportScript) + "</script></body></html>\n";
}

std::string escape_html(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  constexpr std::string_view kSpecial = "&<>\"'";
  constexpr std::array<std::string_view, 5> kEntities = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
  for (const char c : text) {
    const auto special = kSpecial.find(c);
    if (special == std::string_view::npos)
      out += c;
    else
      out += kEntities.at(special);
  }
  return out;
}

}  // namespace fedge::server
