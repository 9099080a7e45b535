#include "api/data/stage.h"

#include "devices/exceptions.h"
#include "devices/status_macros.h"

namespace troupe::data {

absl::Status Stage::Named(const absl::Status& status) const {
  return WithContext(StrCat(name(), ": "), status);
}

absl::Status Stage::CheckWanted() const {
  if (!player_->flow()->stopped()) return absl::OkStatus();
  return absl::CancelledError("the iterator is cancelled");
}

absl::StatusOr<Progress> Stage::Pull(size_t limit, Block* out) {
  if (!failed_.ok()) return failed_;
  // Here, as a stage that looks for an element for long, such as a filter, pulls again and again.
  TROUPE_RETURN_IF_ERROR(CheckWanted());
  const size_t before = out->size();
  const bool measuring = player_->measuring();
  const uint64_t begin = measuring ? player_->flow()->clock()->NowNs() : 0;
  absl::StatusOr<Progress> progress = CatchExceptions([&] { return DoPull(limit, out); });
  if (measuring) {
    meter_.AddNanoseconds(static_cast<int64_t>(player_->flow()->clock()->NowNs() - begin) *
                          Meter::kEvery);
  }
  if (!progress.ok()) failed_ = progress.status();
  const size_t given = out->size() - before;
  if (given == 0) return progress;
  meter_.AddElements(static_cast<int64_t>(given));
  return Progress::kSome;
}

absl::Status Stage::SavePosition(PositionWriter* to) {
  if (!failed_.ok()) return failed_;
  to->Text(name());
  return Save(to);
}

void Stage::RestorePosition(PositionReader* from) {
  from->Expect(name());
  Restore(from);
}

}  // namespace troupe::data
