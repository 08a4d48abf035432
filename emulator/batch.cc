// SPDX-License-Identifier: GPL-2.0-or-later
// Batches, as gcloud sends them: several calls in one multipart body.
#include "emulator/front.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace flex::emulator {

namespace {

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const int lower = std::tolower(static_cast<unsigned char>(c));
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] == '%' && i + 2 < text.size() && digit_of(text[i + 1]) >= 0 &&
               digit_of(text[i + 2]) >= 0) {
      out += static_cast<char>(digit_of(text[i + 1]) * 16 + digit_of(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// The text up to the next line's end; `rest` goes on after it.
std::string take_line(std::string_view& rest) {
  const std::size_t end = std::min(rest.find('\n'), rest.size());
  std::string line(rest.substr(0, end));
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (!line.empty() && line.back() == '\r') line.pop_back();
  return line;
}

std::map<std::string, std::string> take_headers(std::string_view& rest) {
  std::map<std::string, std::string> headers;
  for (std::string line = take_line(rest); !line.empty(); line = take_line(rest)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string name = line.substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    const std::size_t from = std::min(line.find_first_not_of(' ', colon + 1), line.size());
    headers[name] = line.substr(from);
  }
  return headers;
}

struct Part {
  std::string id{};
  HttpIn in{};
};

Part read_part(std::string_view text, const std::string& authorization) {
  Part part;
  const auto outer = take_headers(text);
  const auto id = outer.find("content-id");
  if (id != outer.end()) part.id = id->second;
  const std::string first = take_line(text);
  const std::size_t space = first.find(' ');
  const std::size_t end = std::min(first.find(' ', space + 1), first.size());
  if (space == std::string::npos) return part;
  part.in.verb = first.substr(0, space);
  std::string target = first.substr(space + 1, end - space - 1);
  if (target.starts_with("http")) target = target.substr(target.find('/', target.find("//") + 2));
  const std::size_t mark = std::min(target.find('?'), target.size());
  part.in.path = decode(target.substr(0, mark));
  if (mark < target.size()) part.in.query = parse_query(target.substr(mark + 1));
  const auto inner = take_headers(text);
  const auto own = inner.find("authorization");
  part.in.authorization = own == inner.end() ? authorization : own->second;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  part.in.body = std::string(text);
  return part;
}

std::string boundary_of(const std::string& type) {
  const std::size_t at = type.find("boundary=");
  if (at == std::string::npos) return {};
  std::string boundary = type.substr(at + 9);
  boundary = boundary.substr(0, boundary.find(';'));
  std::erase(boundary, '"');
  return boundary;
}

std::string response_id(std::string id) {
  const std::size_t open = id.find('<');
  return open == std::string::npos ? "response-" + id : id.insert(open + 1, "response-");
}

}  // namespace

Query parse_query(const std::string& text) {
  Query query;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('&', at), text.size());
    const std::string pair = text.substr(at, end - at);
    const std::size_t sign = std::min(pair.find('='), pair.size());
    if (!pair.empty())
      query.emplace(decode(pair.substr(0, sign)),
                    sign < pair.size() ? decode(pair.substr(sign + 1)) : std::string());
    at = end + 1;
  }
  return query;
}

HttpOut Front::handle_batch(const HttpIn& in) {
  const std::string boundary = boundary_of(in.content_type);
  if (boundary.empty()) return json_out(400, invalid("A batch is multipart/mixed.").body);
  const std::string mark = "--" + boundary;
  const std::string answer = "batch_emulator";
  std::string body;
  std::size_t at = in.body.find(mark);
  while (at != std::string::npos) {
    at += mark.size();
    if (in.body.compare(at, 2, "--") == 0) break;
    const std::size_t next = in.body.find(mark, at);
    std::string_view text(in.body);
    text = text.substr(at, next == std::string::npos ? next : next - at);
    static_cast<void>(take_line(text));
    Part part = read_part(text, in.authorization);
    part.in.is_gone = in.is_gone;
    const HttpOut out = handle_api(part.in);
    body += fmt::format(
        "--{}\r\nContent-Type: application/http\r\nContent-ID: {}\r\n\r\nHTTP/1.1 {} {}\r\n"
        "Content-Type: application/json; charset=UTF-8\r\nContent-Length: {}\r\n\r\n{}\r\n",
        answer,
        response_id(part.id),
        out.status,
        out.status == 200 ? "OK" : "Error",
        out.body.size(),
        out.body);
    at = next;
  }
  body += "--" + answer + "--\r\n";
  return {.status = 200, .body = body, .content_type = "multipart/mixed; boundary=" + answer};
}

}  // namespace flex::emulator
