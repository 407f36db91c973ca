#include "run/file/tokenizer_parts.h"

#include "protocol/limits.h"

namespace fedge::run {

std::size_t tokenizer_parts(const RunConfig& run) {
  const learn::TokenizerSpec& tokenizer = run.task.data.tokenizer;
  if (tokenizer.table_hash.empty()) return 0;
  return (tokenizer.table.size() + protocol::kMaxTokenizerPart - 1) / protocol::kMaxTokenizerPart;
}

std::optional<protocol::TokenizerPart> tokenizer_part(const RunConfig& run,
                                                      const protocol::TokenizerRequest& asked) {
  const std::string& table = run.task.data.tokenizer.table;
  if (tokenizer_parts(run) == 0 || asked.offset >= table.size()) return {};
  return protocol::TokenizerPart{asked.run, static_cast<std::uint32_t>(table.size()), asked.offset,
                                 table.substr(asked.offset, protocol::kMaxTokenizerPart)};
}

}  // namespace fedge::run
