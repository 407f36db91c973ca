#include "dht/opendht/node_file.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "core/platform/files.h"

namespace fedge::dht {
namespace {

constexpr std::size_t kMaxFile = kMaxKnownNodes * 320;
constexpr std::size_t kIdDigits = 40;

bool is_id(const std::string& text) {
  return text.size() == kIdDigits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::vector<KnownNode> read_node_file(const std::filesystem::path& path) {
  std::vector<KnownNode> nodes;
  if (path.empty()) return nodes;
  const auto text = read_file(path, kMaxFile);
  if (!text) return nodes;
  std::istringstream lines(*text);
  KnownNode node;
  while (nodes.size() < kMaxKnownNodes && lines >> node.id >> node.address)
    if (is_id(node.id) && protocol::parse_address(node.address)) nodes.push_back(node);
  return nodes;
}

Result<void> write_node_file(const std::filesystem::path& path, const std::vector<KnownNode>& nodes) {
  std::string text;
  for (std::size_t i = 0; i < std::min(nodes.size(), kMaxKnownNodes); ++i)
    text += nodes[i].id + " " + nodes[i].address + "\n";
  if (text.empty()) return {};  // keep the nodes known before
  return write_file_atomic(path, text, 0600);
}

}  // namespace fedge::dht
