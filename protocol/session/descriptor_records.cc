#include "protocol/session/detail/descriptor_records.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <vector>

namespace fedge::protocol {
namespace {

constexpr int kBatch = 256;  // 42 KiB

}  // namespace

void DescriptorRecords::make_room_for(boost::asio::io_context& io, int descriptor) {
  if (descriptor < made_) return;
  made_ = descriptor + kBatch;
  // Asio makes a record for an always-ready descriptor without registering it with epoll, so one descriptor
  // can serve for all records.
  const int always_ready = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (always_ready < 0) return;
  std::vector<boost::asio::posix::stream_descriptor> together;
  for (int i = 0; i < kBatch; ++i) {
    boost::system::error_code error;
    together.emplace_back(io);
    if (together.back().assign(always_ready, error); error) break;
  }
  for (auto& record : together)
    if (record.is_open()) record.release();
  ::close(always_ready);
}

}  // namespace fedge::protocol
