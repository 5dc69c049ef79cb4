// Reads messages as PlotJuggler's MessagePack parser does: nlohmann::json::from_msgpack on the whole frame, then numbers
// and texts flattened by name. One frame in hex a line on standard input; for each, "refused" or its series, one a line,
// and an empty line. Ref: PlotJuggler 3, nlohmann_parsers.cpp.
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

using nlohmann::json;

static void flatten(const std::string& prefix, const json& value) {
  switch (value.type()) {
    case json::value_t::object:
      for (const auto& part : value.items()) flatten(prefix + "/" + part.key(), part.value());
      break;
    case json::value_t::array:
      for (size_t i = 0; i < value.size(); i++) flatten(prefix + "[" + std::to_string(i) + "]", value[i]);
      break;
    case json::value_t::number_float:
      std::printf("%s float %a\n", prefix.c_str(), value.get<double>());
      break;
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
      std::printf("%s int %lld\n", prefix.c_str(), static_cast<long long>(value.get<std::int64_t>()));
      break;
    case json::value_t::boolean:
      std::printf("%s bool %d\n", prefix.c_str(), value.get<bool>() ? 1 : 0);
      break;
    case json::value_t::string:
      std::printf("%s str %s\n", prefix.c_str(), value.get<std::string>().c_str());
      break;
    default:
      break;  // it leaves out everything else
  }
}

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::vector<std::uint8_t> frame;
    for (size_t i = 0; i + 1 < line.size(); i += 2) frame.push_back(std::stoi(line.substr(i, 2), nullptr, 16));
    try {
      flatten("", json::from_msgpack(frame));
    } catch (const json::exception&) {
      std::printf("refused\n");
    }
    std::printf("\n");
  }
  return 0;
}
