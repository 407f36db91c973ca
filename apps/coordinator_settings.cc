#include "apps/coordinator_settings.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "apps/common.h"
#include "core/platform/files.h"
#include "core/platform/thread_pool.h"
#include "server/access/oidc/token_verifier.h"
#include "server/http/http_identity.h"

namespace fedge::apps {
namespace {

// Returns why a coordinator could not create or write its data directory.
Result<void> check_data_directory(const std::filesystem::path& directory) {
  std::error_code ignored;
  std::filesystem::path existing = std::filesystem::absolute(directory, ignored);
  while (!std::filesystem::exists(existing, ignored) && existing.has_relative_path())
    existing = existing.parent_path();
  if (!std::filesystem::is_directory(existing, ignored))
    return Error{ErrorCode::kInvalid, "data_directory: " + existing.string() + " is not a directory"};
  if (::access(existing.c_str(), W_OK | X_OK) != 0)
    return system_error("data_directory: this user cannot write to", existing, errno);
  return check_owner(directory / "node.key");
}

// All that is wrong with the paths in the configuration, one line for each.
std::vector<std::string> wrong_paths(const server::CoordinatorConfig& config) {
  std::vector<std::string> wrong;
  const auto add = [&](const auto& checked) {
    if (!checked) wrong.push_back(checked.error().message);
  };
  if (!config.data_directory.empty()) add(check_data_directory(config.data_directory));
  if (!config.api.certificate.empty())
    add(server::load_http_identity({config.api.certificate, config.api.key}));
  if (config.api.oidc) add(server::TokenVerifier::open(*config.api.oidc));
  return wrong;
}

}  // namespace

Result<server::CoordinatorConfig> coordinator_settings(const CoordinatorProgramOptions& options) {
  config::Document document{"the command line", {}};
  if (!options.config_file.empty()) {
    FEDGE_TRY(loaded, load_document(options.config_file, {}));
    document = std::move(loaded);
  }
  FEDGE_TRY(config, server::read_coordinator_config(document));
  if (options.listen) {
    const auto listen = protocol::parse_address(*options.listen);
    if (!listen) return listen.error().with_prefix("--listen: ");
    config.listen = *listen;
  }
  if (options.admin_listen) {
    const auto listen = protocol::parse_address(*options.admin_listen);
    if (!listen) return listen.error().with_prefix("--admin-listen: ");
    config.admin = *listen;
  }
  if (options.api_listen) {
    const auto listen = protocol::parse_address(*options.api_listen);
    if (!listen) return listen.error().with_prefix("--api-listen: ");
    config.api.listen = *listen;
  }
  if (options.data_directory) config.data_directory = *options.data_directory;
  if (const char* exported = std::getenv("FEDGE_DATA_DIR");
      exported != nullptr && config.data_directory.empty())
    config.data_directory = exported;
  if (options.threads) config.threads = *options.threads;
  if (config.threads == 0) config.threads = available_processors();
  if (options.log_level) config.log_level = *options.log_level;
  if (options.log_format) config.log_format = *options.log_format;
  return config;
}

int check_coordinator_config(const CoordinatorProgramOptions& options) {
  const auto config = coordinator_settings(options);
  if (!config) return report_failure(options.program, config.error());
  if (const auto wrong = wrong_paths(*config); !wrong.empty()) {
    std::string lines;
    for (const std::string& line : wrong) lines += options.config_file + ": " + line + "\n";
    lines += std::to_string(wrong.size()) + (wrong.size() == 1 ? " error in " : " errors in ") +
             options.config_file;
    return report_failure(options.program, {ErrorCode::kInvalid, lines});
  }
  std::printf("%s: the configuration is valid\n", options.config_file.c_str());
  return kOk;
}

}  // namespace fedge::apps
