#include "apps/coordinator_admin.h"

#include "apps/common.h"
#include "core/platform/files.h"
#include "protocol/session/loop.h"
#include "server/admin/pages.h"

namespace fedge::apps {

CoordinatorAdmin::CoordinatorAdmin(const std::filesystem::path& data_directory)
    : address_file_(data_directory / "admin-address"),
      api_address_file_(data_directory / "api-address"),
      metrics_(
          {.data_directory = data_directory,
           .version = version(),
           .clients = [this] { return coordinator_ ? coordinator_->activity().clients : 0; },
           .tasks = [this] { return coordinator_ ? coordinator_->activity().tasks : 0; },
           .runs = [this] { return coordinator_ ? coordinator_->runs() : std::vector<server::RunRecord>(); },
           .enrolled = [this]() -> Result<std::size_t> {
             return coordinator_ ? coordinator_->enrolled() : Result<std::size_t>(std::size_t{0});
           },
           .check = [this] { return coordinator_ ? coordinator_->check() : Result<void>(); },
           .directory = [this]() -> std::optional<server::DirectoryFigures> {
             const dht::NetworkDirectory* directory = coordinator_ ? coordinator_->directory() : nullptr;
             if (directory == nullptr) return std::nullopt;
             return server::DirectoryFigures{directory->status(), directory->ignored()};
           },
           .live = [this] { return coordinator_ ? coordinator_->live() : nullptr; },
           .traces = [this] { return coordinator_ ? coordinator_->traces() : std::nullopt; }}) {}

void CoordinatorAdmin::log(const Event& event) {
  log_event(event);
  metrics_.add(event);
}

Result<void> CoordinatorAdmin::listen(boost::asio::io_context& io,
                                      const std::optional<protocol::Address>& address,
                                      const server::Coordinator& coordinator) {
  std::error_code ignored;
  std::filesystem::remove(address_file_, ignored);
  if (!address) return {};
  coordinator_ = &coordinator;
  FEDGE_TRY(pages, server::HttpServer::listen(
                       io, {.listen = *address},
                       std::make_shared<server::PageService>(server::coordinator_pages(metrics_))));
  pages_ = std::move(pages);
  const std::string real = protocol::to_string(pages_->address());
  log(Event{Severity::kInfo, "admin.listening", {}}.with("address", real));
  return write_file_atomic(address_file_, real + "\n");
}

Result<std::shared_ptr<server::TokenVerifier>> CoordinatorAdmin::identity_provider(
    boost::asio::io_context& io, const std::optional<server::IdentityProvider>& provider) {
  if (!provider) return std::shared_ptr<server::TokenVerifier>();
  return server::TokenVerifier::open(
      *provider, [this, &io](const Event& event) { protocol::post(io, [this, event] { log(event); }); });
}

Result<void> CoordinatorAdmin::serve_api(const server::ApiServerOptions& options) {
  std::error_code ignored;
  std::filesystem::remove(api_address_file_, ignored);
  FEDGE_TRY(api, server::ApiServer::start(options));
  api_ = std::move(api);
  const auto address = api_->address();
  if (!address) return {};
  const std::string real = protocol::to_string(*address);
  log(Event{Severity::kInfo, "api.listening", {}}
          .with("address", real)
          .with("fingerprint", api_->fingerprint()));
  return write_file_atomic(api_address_file_, real + "\n");
}

void CoordinatorAdmin::stop() {
  api_.reset();
  pages_.reset();
}

}  // namespace fedge::apps
