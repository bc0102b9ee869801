#include "page_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "decent/comm/socket.h"
#include "decent/core/error.h"
#include "decent/report/page/page.h"
#include "decent/runfolder/output_lock.h"

namespace decent {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::size_t kMostHead = 16384;  // bytes of a request
constexpr std::size_t kMostConnections = 32;
// Short, because a browser opens connections ahead of its requests.
constexpr seconds kHeadTime{3};

struct Connection {
  Socket socket;
  std::atomic<bool> computes = false;  // its answer; it does not wait for the browser
  bool is_cut = false;
};

struct Request {
  std::string method;
  std::string path;
  std::string host;
};

using Body = std::shared_ptr<const std::string>;

struct Answer {
  std::string status = "200 OK";
  std::string type = "text/plain; charset=utf-8";
  Body body;
  std::string headers = {};  // further headers, each with its end of line
};

Body body_of(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string_view stripped(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Receives a request up to the empty line; the requests of a page have no body.
std::string receive_head(const Socket& socket) {
  const auto deadline = steady_clock::now() + kHeadTime;
  std::string head;
  while (head.size() < kMostHead && !head.ends_with("\r\n\r\n")) {
    char next = 0;
    receive_all(socket, {&next, 1}, deadline);
    head += next;
  }
  return head;
}

// Nothing if the text is no request.
std::optional<Request> parse(const std::string& head) {
  if (!head.ends_with("\r\n\r\n")) return std::nullopt;
  const std::size_t first = head.find(' ');
  const std::size_t second = head.find(' ', first + 1);
  const std::size_t end = head.find("\r\n");
  if (second == std::string::npos || second > end) return std::nullopt;
  Request request{head.substr(0, first), head.substr(first + 1, second - first - 1), ""};
  for (std::size_t at = end + 2; at < head.size();) {
    const std::size_t line_end = head.find("\r\n", at);
    const std::string_view line = std::string_view(head).substr(at, line_end - at);
    if (lower(line.substr(0, 5)) == "host:") {
      if (!request.host.empty()) return std::nullopt;
      request.host = lower(stripped(line.substr(5)));
    }
    at = line_end + 2;
  }
  return request;
}

// Changes whenever a run begins, ends (even by kill -9), or writes something that the page shows.
std::string stamp_of(std::span<const RunFolder> runs) {
  std::string stamp;
  for (const RunFolder& run : runs) {
    for (const auto& file : {run.metrics(), run.log(), run.recipe(), run.confusion()}) {
      std::error_code none;
      const auto size = std::filesystem::file_size(file, none);
      const auto time = std::filesystem::last_write_time(file, none).time_since_epoch().count();
      stamp += none ? "-," : std::to_string(size) + "@" + std::to_string(time) + ",";
    }
    stamp += find_holder(run.path()) ? "held," : "free,";
  }
  return stamp;
}

class Server {
 public:
  Server(std::span<const RunFolder> runs, int port)
      : runs_(runs.begin(), runs.end()), listener_(listen(port)), port_(port_of(listener_)) {}

  int port() const { return port_; }

  [[noreturn]] void run() {
    while (true) {
      try {
        Socket socket = accept_from(listener_, steady_clock::now() + std::chrono::hours(1));
        make_room();
        start_answer(std::make_shared<Connection>(std::move(socket)));
      } catch (const std::system_error&) {
        // Nobody connected for an hour, or a browser connected and left at once.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      }
    }
  }

 private:
  static Socket listen(int port) {
    try {
      return listen_on("127.0.0.1", port);
    } catch (const std::system_error& error) {
      throw UserError("--serve " + std::to_string(port) + ": cannot listen on this port: " +
                      error.code().message() + ". --serve 0 takes a free one");
    }
  }

  // Closes a connection that requests nothing or does not read its answer, in favour of a new one.
  void make_room() {
    std::unique_lock lock(connections_mutex_);
    while (connections_.size() >= kMostConnections) {
      const auto oldest =
          std::find_if(connections_.begin(), connections_.end(),
                       [](const auto& each) { return !each->computes && !each->is_cut; });
      if (oldest != connections_.end()) {
        (*oldest)->is_cut = true;
        ::shutdown((*oldest)->socket.descriptor(), SHUT_RDWR);
      }
      one_left_.wait_for(lock, std::chrono::milliseconds(100));
    }
  }

  void start_answer(const std::shared_ptr<Connection>& connection) {
    // Otherwise the system buffers megabytes of an answer that nobody reads.
    const int bytes = 1 << 17;
    ::setsockopt(connection->socket.descriptor(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    {
      const std::lock_guard lock(connections_mutex_);
      connections_.push_back(connection);
    }
    try {
      std::thread([this, connection] { answer(connection); }).detach();
    } catch (const std::system_error&) {
      leave(connection);
      throw;
    }
  }

  void leave(const std::shared_ptr<Connection>& connection) {
    const std::lock_guard lock(connections_mutex_);
    connections_.remove(connection);
    one_left_.notify_one();
  }

  void answer(const std::shared_ptr<Connection>& connection) {
    try {
      const auto request = parse(receive_head(connection->socket));
      connection->computes = true;
      const Answer made =
          request ? answer_to(*request) : error("400 Bad Request", "This is no request.\n");
      connection->computes = false;
      send(connection->socket, made);
    } catch (const std::exception&) {
      // The browser has gone, or memory is short: the browser will ask again.
    }
    leave(connection);
  }

  // Refuses pages of another site whose name resolves to this machine (DNS rebinding): their
  // requests name the other site as host.
  bool is_for_us(const std::string& host) const {
    const std::string end = ":" + std::to_string(port_);
    return host == "127.0.0.1" + end || host == "localhost" + end ||
           (port_ == 80 && (host == "127.0.0.1" || host == "localhost"));
  }

  static Answer error(const std::string& status, const std::string& text) {
    return {.status = status, .body = body_of(text)};
  }

  Answer answer_to(const Request& request) {
    if (!is_for_us(request.host))
      return error("403 Forbidden", "This server is 127.0.0.1 and localhost only.\n");
    if (request.method != "GET")
      return {.status = "405 Method Not Allowed",
              .body = body_of("This server answers GET only.\n"),
              .headers = "Allow: GET\r\n"};
    if (request.path == "/")
      return {.type = "text/html; charset=utf-8",
              .body = body_of(report_page(runs_, {.served = true, .data = *data()}))};
    if (request.path == "/stamp") return {.body = body_of(stamp_of(runs_))};
    if (request.path == "/data") return {.type = "application/json", .body = data()};
    return error("404 Not Found", "There is nothing here. The page is at /\n");
  }

  // The data is made once for all requests until the runs have written more.
  Body data() {
    const std::lock_guard lock(data_mutex_);
    const std::string stamp = stamp_of(runs_);
    if (!data_ || data_stamp_ != stamp) {
      data_ = body_of(report_data(runs_));
      data_stamp_ = stamp;
    }
    return data_;
  }

  static void send(const Socket& socket, const Answer& answer) {
    const std::string head = "HTTP/1.1 " + answer.status + "\r\nContent-Type: " + answer.type +
                             "\r\nContent-Length: " + std::to_string(answer.body->size()) +
                             "\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff" +
                             "\r\nX-Frame-Options: DENY\r\nConnection: close\r\n" + answer.headers +
                             "\r\n";
    const auto deadline = steady_clock::now() + seconds(60);
    send_all(socket, head, deadline);
    send_all(socket, *answer.body, deadline);
  }

  std::vector<RunFolder> runs_;
  Socket listener_;
  int port_;
  std::mutex connections_mutex_;
  std::condition_variable one_left_;
  std::list<std::shared_ptr<Connection>> connections_;  // the oldest first
  std::mutex data_mutex_;
  std::string data_stamp_;
  Body data_;
};

}  // namespace

void serve_page(std::span<const RunFolder> runs, int port) {
  Server server(runs, port);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { std::_Exit(0); });
  std::printf("http://127.0.0.1:%d/ until Ctrl-C\n", server.port());
  std::fflush(stdout);
  server.run();
}

}  // namespace decent
