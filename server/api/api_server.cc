#include "server/api/api_server.h"

#include <unistd.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <thread>
#include <utility>

#include "server/api/api_service.h"
#include "server/http/http_server.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMostConnections = 512;

Result<HttpIdentityFiles> identity_files(const ApiServerOptions& options) {
  if (!options.certificate.empty()) return HttpIdentityFiles{options.certificate, options.key};
  HttpIdentityFiles files{options.parts.data_directory / "api-cert.pem",
                          options.parts.data_directory / "api-key.pem"};
  std::error_code ignored;
  const bool certificate = std::filesystem::exists(files.certificate, ignored);
  const bool key = std::filesystem::exists(files.key, ignored);
  if (certificate != key)
    return Error{ErrorCode::kUnavailable, (key ? files.certificate : files.key).string() +
                                              " is missing, but " +
                                              (key ? files.key : files.certificate).string() +
                                              " exists; restore it, or remove both to create new ones, which "
                                              "users of 'fedge login' must then trust again"};
  if (certificate) return files;
  std::vector<std::string> hosts = {"localhost", "127.0.0.1", "::1"};
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) == 0 && *name != '\0') hosts.emplace_back(name);
  const std::string& host = options.listen->host;
  if (host != "0.0.0.0" && host != "::") hosts.push_back(host);
  hosts.insert(hosts.end(), options.hosts.begin(), options.hosts.end());
  FEDGE_TRY_VOID(create_http_identity(files, hosts));
  return files;
}

}  // namespace

std::filesystem::path admin_socket(const std::filesystem::path& data_directory) {
  return data_directory / "admin.sock";
}

class ApiServer::Impl {
 public:
  explicit Impl(const ApiServerOptions& options)
      : service_(std::make_shared<ApiService>(io_, options.parts, options.report)) {}
  ~Impl() {
    boost::asio::post(io_, [this] {
      service_->end_streams();
      socket_.reset();
      https_.reset();
    });
    service_->stop();
    work_.reset();
    if (thread_.joinable()) thread_.join();
    service_->drop();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Result<void> start(const ApiServerOptions& options) {
    FEDGE_TRY(socket, HttpServer::listen(io_,
                                         {.listen = admin_socket(options.parts.data_directory),
                                          .what = "the admin API",
                                          .max_connections = kMostConnections},
                                         service_));
    socket_ = std::move(socket);
    if (options.listen) {
      FEDGE_TRY(files, identity_files(options));
      FEDGE_TRY(identity, load_http_identity(files));
      fingerprint_ = fingerprint_of(*identity);
      FEDGE_TRY(https, HttpServer::listen(io_,
                                          {.listen = *options.listen,
                                           .identity = std::move(identity),
                                           .what = "the admin API",
                                           .max_connections = kMostConnections},
                                          service_));
      https_ = std::move(https);
      address_ = https_->address();
    }
    thread_ = std::thread([this] { io_.run(); });
    return {};
  }

  const std::optional<protocol::Address>& address() const { return address_; }
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(io_);
  std::shared_ptr<ApiService> service_;
  std::unique_ptr<HttpServer> socket_;
  std::unique_ptr<HttpServer> https_;
  std::optional<protocol::Address> address_;
  std::string fingerprint_;
  std::thread thread_;
};

ApiServer::ApiServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ApiServer::~ApiServer() = default;

Result<std::unique_ptr<ApiServer>> ApiServer::start(const ApiServerOptions& options) {
  auto impl = std::make_unique<Impl>(options);
  FEDGE_TRY_VOID(impl->start(options));
  return std::unique_ptr<ApiServer>(new ApiServer(std::move(impl)));
}

std::optional<protocol::Address> ApiServer::address() const { return impl_->address(); }
const std::string& ApiServer::fingerprint() const { return impl_->fingerprint(); }

}  // namespace fedge::server
