// LinkImpl: a Link on a TLS stream. on_readable() reads frames and on_writable() writes them when the
// socket is ready. LinkTransfers decides about chunks, and LinkWatch about silence and floods;
// FrameReader and FrameWriter handle bytes.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "protocol/session/admission.h"
#include "protocol/session/detail/link_transfers.h"
#include "protocol/session/detail/link_watch.h"
#include "protocol/session/detail/tls.h"
#include "protocol/session/endpoint.h"
#include "protocol/session/frame_reader.h"
#include "protocol/session/frame_writer.h"

namespace fedge::protocol {

class LinkImpl final : public Link, public std::enable_shared_from_this<LinkImpl> {
 public:
  // `ticket` is null on the connecting side.
  LinkImpl(TlsStream stream, std::string peer_address, const Timeouts& timeouts,
           std::unique_ptr<Admission::Ticket> ticket);

  // Begins to read; call once, after the callbacks have been set.
  void start();
  // Closes at once, without a message to the peer.
  void drop(const Error& error) { finish(error); }

  const PublicKey& peer() const override { return stream_.peer(); }
  const PublicKey& own_key() const override { return stream_.own_key(); }
  std::string peer_address() const override { return peer_address_; }
  void set_callbacks(LinkCallbacks callbacks) override;
  void authorise() override;
  void send(const Message& message) override;
  void serve(const Manifest& manifest, std::shared_ptr<ChunkSource> source) override;
  void stop_serving(const ObjectId& id) override { transfers_.stop_serving(id); }
  void fetch(const Manifest& manifest, std::shared_ptr<ChunkSink> sink,
             std::function<void(Result<void>)> done) override;
  void cancel_fetch(const ObjectId& id) override { transfers_.cancel_fetch(id); }
  Result<void> exchange(const Manifest& manifest, std::shared_ptr<ChunkSource> source,
                        std::shared_ptr<ChunkSink> sink, ExchangeCallbacks callbacks) override;
  void end_exchange(const ObjectId& id) override;
  bool ask(const Chunk& chunk) override;
  bool send_chunk(const Chunk& chunk) override;
  bool refuse_chunk(const Chunk& chunk, const Error& error) override;
  std::size_t queued() const override { return writer_.control_size(); }
  Traffic traffic() const override { return traffic_; }
  void close(const std::string& reason) override;

 private:
  enum class Phase {
    kOpen,
    kFlushing,   // writes what is queued, ignores input
    kLingering,  // has closed its sending side, waits for the peer to do the same
    kClosed,
  };

  // Input
  void wait_readable();
  void on_readable();
  bool read_some(std::size_t& budget);  // false: wait for input, or the link has ended
  Result<void> take(FrameReader::Event event);
  Result<void> take_frame();
  Result<void> take_message();
  void take_chunk();
  Result<void> take_chunk_request();
  Result<void> take_chunk_refused();

  // Output
  bool has_output() const { return !writer_.idle() || transfers_.ready(); }
  void queue(const std::string& frame);
  void ask_for_chunks();
  void wait_writable();
  void flush_soon();
  void on_writable();
  Result<std::span<const std::byte>> choose_bytes();  // empty: nothing to write
  void write_failed();

  // Life
  void tick();
  void arm_ticker();
  void fail(const Error& error);  // tells the peer, then closes
  void begin_closing(const Error& error);
  void end_fetches();
  void linger();
  void peer_gone(const Error& error);
  void finish(const Error& error);
  void report_closed();

  TlsStream stream_;
  std::string peer_address_;
  Timeouts timeouts_;
  std::unique_ptr<Admission::Ticket> ticket_;
  std::shared_ptr<LinkCallbacks> callbacks_ = std::make_shared<LinkCallbacks>();
  boost::asio::steady_timer ticker_;
  boost::asio::steady_timer deadline_;  // for authorisation, later for closing

  Phase phase_ = Phase::kOpen;
  bool authorised_ = false;
  bool accepted_;  // this is the accepting side
  bool closed_reported_ = false;
  std::optional<Error> outcome_;    // why the link ends
  std::optional<Goodbye> goodbye_;  // from the peer

  FrameReader reader_;
  FrameWriter writer_;
  LinkTransfers transfers_;
  LinkWatch watch_;
  Traffic traffic_;
  std::uint64_t written_ = 0;  // bytes

  bool waiting_readable_ = false;
  bool waiting_writable_ = false;
  bool flush_posted_ = false;
  bool write_broken_ = false;
  bool read_needs_write_ = false;  // OpenSSL must write before it can continue to read
};

}  // namespace fedge::protocol
