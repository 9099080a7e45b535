#include "devices/log_limiter.h"

#include <algorithm>
#include <utility>

namespace troupe {

bool LogLimiter::Admit(LogLevel level, std::string_view task, LogTopic topic, std::string_view text,
                       Time now) {
  std::string key = StrCat(task, "\n", topic.event, "\n", topic.subject);
  if (windows_.size() >= kMostTopics && windows_.count(key) == 0) key.clear();
  Window& window = windows_.try_emplace(std::move(key), Window{now}).first->second;
  std::vector<std::string>& texts = window.texts;
  if (texts.size() < kMost && std::find(texts.begin(), texts.end(), text) == texts.end()) {
    texts.emplace_back(text);
    return true;
  }
  HeldBack& held_back = window.held_back;
  ++held_back.count;
  held_back.level = std::max(held_back.level, level);
  held_back.task = task;
  held_back.last = text;
  return false;
}

std::vector<LogLimiter::HeldBack> LogLimiter::TakeHeldBack(Time now) {
  std::vector<HeldBack> taken;
  std::erase_if(windows_, [&](const auto& entry) {
    const Window& window = entry.second;
    if (now - window.begin < kWindow) return false;
    if (window.held_back.count > 0) taken.push_back(window.held_back);
    return true;
  });
  return taken;
}

LogLimiter::Time LogLimiter::due() const {
  Time first = Time::max();
  for (const auto& [key, window] : windows_) {
    if (window.held_back.count > 0) first = std::min(first, window.begin + kWindow);
  }
  return first;
}

}  // namespace troupe
