#include "protocol/session/loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <utility>

namespace fedge::protocol {

void post(boost::asio::io_context& io, Job job) { boost::asio::post(io, std::move(job)); }

struct Timer::Impl {
  explicit Impl(boost::asio::io_context& io) : timer(io) {}

  // The counter also cancels a wait that has expired but not been called, which Asio can no longer cancel.
  void wait(Job job) {
    const std::uint64_t mine = ++*set;
    timer.async_wait([job = std::move(job), set = set, mine](const boost::system::error_code& error) {
      if (!error && *set == mine) job();
    });
  }

  boost::asio::steady_timer timer;
  std::shared_ptr<std::uint64_t> set = std::make_shared<std::uint64_t>(0);  // counts waits and cancels
};

Timer::Timer(boost::asio::io_context& io) : impl_(std::make_unique<Impl>(io)) {}

Timer::~Timer() { ++*impl_->set; }

void Timer::at(std::chrono::steady_clock::time_point due, Job job) {
  impl_->timer.expires_at(due);
  impl_->wait(std::move(job));
}

void Timer::after(Duration wait, Job job) {
  impl_->timer.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(wait));
  impl_->wait(std::move(job));
}

void Timer::cancel() {
  ++*impl_->set;
  impl_->timer.cancel();
}

struct Worker::Impl {
  boost::asio::thread_pool pool{1};
};

Worker::Worker() : impl_(std::make_unique<Impl>()) {}

Worker::~Worker() = default;

void Worker::post(Job job) { boost::asio::post(impl_->pool, std::move(job)); }

void Worker::stop() { impl_->pool.stop(); }

void Worker::join() { impl_->pool.join(); }

struct Unfinished::Impl {
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard;
};

Unfinished::Unfinished(boost::asio::io_context& io) : impl_(new Impl{boost::asio::make_work_guard(io)}) {}

Unfinished::~Unfinished() = default;

void Unfinished::reset() { impl_->guard.reset(); }

}  // namespace fedge::protocol
