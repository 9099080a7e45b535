#include "kernels/io/reader.h"

#include "devices/cpu/compute_pool.h"
#include "devices/exceptions.h"
#include "devices/status_macros.h"
#include "graph/protos/reader_state.pb.h"
#include "kernels/io/file_thread.h"

namespace troupe {
namespace {

/// What is read ahead: the next pieces are asked for when half of it is left.
constexpr size_t kAheadBytes = size_t{256} << 10, kAheadRecords = 4096;
/// What a record costs besides its bytes.
constexpr size_t kRecordOverhead = 64;

}  // namespace

/// What comes back to the reader from a queue or from the threads for input.
class Reader::Delivery : public Call {
 public:
  explicit Delivery(Reader* reader) : Call(reader, kChanges) { KeepResource(); }

  // A name, or why there is none.
  uint64_t id = 0;
  absl::StatusOr<std::string> file_name = "";

  // Records of a file.
  uint64_t file_id = 0;
  std::shared_ptr<FileRecords> file;  ///< None: it could not be opened.
  std::vector<Record> records;
  bool at_end = false;
  absl::Status error;

 private:
  absl::StatusOr<Progress> Serve() override {
    auto* const reader = static_cast<Reader*>(resource());
    reader->busy_ = Busy::kNo;
    if (id != 0) {
      TakeName(reader);
    } else if (file_id == reader->file_id_) {
      TakeRecords(reader);
    }
    return Progress::kOver;
  }
  void TakeName(Reader* reader) {
    auto* const first = static_cast<ReadCall*>(reader->lines_[kReads].front());
    const bool waits = first != nullptr && reader->asking_ == id && first->id_ == id;
    reader->asking_ = 0;
    if (file_name.ok()) {
      reader->next_names_.push_back(*std::move(file_name));
    } else if (waits) {
      first->error_ = file_name.status();
    }
  }
  void TakeRecords(Reader* reader) {
    reader->file_ = std::move(file);
    reader->opened_ |= reader->file_ != nullptr && !reader->reads_one();
    for (Record& record : records) {
      reader->ahead_bytes_ += record.key.size() + record.value.size() + kRecordOverhead;
      reader->ahead_.push_back(std::move(record));
    }
    reader->at_end_ = at_end;
    reader->error_ = std::move(error);
  }
  void Over(std::unique_ptr<Call>) noexcept override {}
};

/// Reads a piece of a file on a thread for input. Holds the file meanwhile.
class Reader::ReadAhead final : public PoolTask {
 public:
  ReadAhead(Reader* reader, std::unique_ptr<Delivery> delivery)
      : files_(reader->options_.files),
        path_(reader->name_of_file_),
        place_(reader->place_),
        delivery_(std::move(delivery)) {
    delivery_->file_id = reader->file_id_;
    delivery_->file = reader->file_;
  }

  void Run() noexcept override {
    const std::unique_ptr<ReadAhead> self(this);
    absl::Status status = CatchExceptions([this] { return Read(); });
    delivery_->error = std::move(status);
    Submit(std::move(delivery_));
  }

 private:
  absl::Status Read() {
    if (delivery_->file == nullptr) {
      TROUPE_ASSIGN_OR_RETURN(delivery_->file, FileRecords::Open(files_, path_, place_));
    }
    size_t bytes = 0;
    std::vector<Record>& records = delivery_->records;
    while (bytes < kAheadBytes && records.size() < kAheadRecords) {
      Record& record = records.emplace_back();
      const absl::StatusOr<bool> there = delivery_->file->Next(&record.key, &record.value);
      if (!there.ok() || !*there) {
        records.pop_back();
        delivery_->at_end = there.ok();
        return there.status();
      }
      bytes += record.key.size() + record.value.size() + kRecordOverhead;
      record.after = delivery_->file->place();
    }
    return absl::OkStatus();
  }

  const FileRecordsOptions files_;
  const std::string path_;
  const RecordPlace place_;
  std::unique_ptr<Delivery> delivery_;
};

Reader::Reader(std::string name, ReaderOptions options)
    : WaitingResource(std::move(name), Order::kInOrder, Order::kAny),
      options_(std::move(options)) {}
Reader::~Reader() = default;

std::string Reader::DebugString() const {
  return StrCat(KindName(options_.files.kind), " reader '", name(), "'");
}

void Reader::Served() noexcept {
  shown_produced_.store(produced_, std::memory_order_release);
  shown_finished_.store(finished_, std::memory_order_release);
}

// --- calls by handle -----------------------------------------------------------------------------

void Reader::Read(RefPtr<Queue> names, CancellationToken* token, Done done) {
  auto call = std::make_unique<CallbackCall<ReadCall>>(this, token, 2, std::move(done));
  call->names = std::move(names);
  Submit(std::move(call));
}

void Reader::ReadUpTo(int64_t n, RefPtr<Queue> names, CancellationToken* token, Done done) {
  auto call = std::make_unique<CallbackCall<ReadCall>>(this, token, 2, std::move(done));
  call->names = std::move(names);
  call->many = true;
  call->n = n;
  Submit(std::move(call));
}

void Reader::Reset(Done done) {
  Submit(std::make_unique<CallbackCall<ChangeCall>>(this, nullptr, 0, std::move(done)));
}

void Reader::SaveState(Done done) {
  auto call = std::make_unique<CallbackCall<ChangeCall>>(this, nullptr, 1, std::move(done));
  call->what = ChangeCall::What::kSave;
  Submit(std::move(call));
}

void Reader::RestoreState(std::string state, Done done) {
  auto call = std::make_unique<CallbackCall<ChangeCall>>(this, nullptr, 0, std::move(done));
  call->what = ChangeCall::What::kRestore;
  call->state = std::move(state);
  Submit(std::move(call));
}

// --- reading -------------------------------------------------------------------------------------

absl::Status Reader::ReadCall::Check(bool*) const {
  if (n <= 0) {
    return InvalidArgument(resource()->DebugString(), ": cannot read ", n,
                           " records: num_records must be > 0");
  }
  if (names->options().types != std::vector<ElementType>{ElementType::kString}) {
    return InvalidArgument(resource()->DebugString(), ": names of files come from a queue of one ",
                           "string a tuple, not from the ", names->DebugString());
  }
  return absl::OkStatus();
}

absl::StatusOr<WaitingResource::Call::Progress> Reader::ReadCall::Serve() {
  auto* const reader = static_cast<Reader*>(resource());
  TROUPE_RETURN_IF_ERROR(std::exchange(error_, absl::OkStatus()));
  const size_t before = taken_.size();
  while (!reader->TakeRecords(this)) {
    if (reader->in_file_) {
      TROUPE_RETURN_IF_ERROR(reader->Fill());
      break;
    }
    if (!reader->next_names_.empty()) {
      std::string next = std::move(reader->next_names_.front());
      reader->next_names_.pop_front();
      reader->BeginFile(std::move(next));
      continue;
    }
    TROUPE_RETURN_IF_ERROR(reader->AskForName(this));
    break;
  }
  if (static_cast<int64_t>(taken_.size()) == n || (!taken_.empty() && !reader->in_file_) ||
      (!taken_.empty() && !reader->error_.ok() && reader->ahead_.empty())) {
    reader->partly_ = false;
    return Progress::kOver;
  }
  if (taken_.empty() && reader->in_file_ && !reader->error_.ok() && reader->ahead_.empty()) {
    // The next call tries again. A file that was never open is left.
    absl::Status status = std::exchange(reader->error_, absl::OkStatus());
    if (!reader->opened_) {
      --reader->started_;
      reader->DropFile();
    }
    return status;
  }
  reader->partly_ = !taken_.empty();
  return taken_.size() > before ? Progress::kSome : Progress::kNone;
}

bool Reader::TakeRecords(ReadCall* call) {
  while (in_file_) {
    if (static_cast<int64_t>(call->taken_.size()) == call->n) return true;
    if (ahead_.empty()) {
      if (!error_.ok()) return true;
      if (!at_end_) return false;
      FinishFile();
      if (!call->taken_.empty()) return true;
      break;
    }
    if (call->taken_.empty()) call->before_ = place_;
    call->taken_.push_back(std::move(ahead_.front()));
    ahead_.pop_front();
    const Record& record = call->taken_.back();
    ahead_bytes_ -= record.key.size() + record.value.size() + kRecordOverhead;
    place_ = record.after;
    ++produced_;
    if (reads_one()) {
      FinishFile();
      return true;
    }
    // Read on while what is there is given out.
    if (ahead_bytes_ < kAheadBytes / 2 && ahead_.size() < kAheadRecords / 2) {
      Fill().IgnoreError();  // It is tried again when nothing is left.
    }
  }
  return static_cast<int64_t>(call->taken_.size()) == call->n;
}

void Reader::ReadCall::Withdraw() {
  auto* const reader = static_cast<Reader*>(resource());
  if (reader->asking_ != 0 && reader->asking_ == id_) {
    reader->asking_ = 0;
    reader->asking_token_->Cancel(absl::CancelledError("the read was given up"));
  }
  if (taken_.empty()) return;
  // All of them are of the file that is read: nobody else has changed it meanwhile.
  reader->partly_ = false;
  reader->produced_ -= static_cast<int64_t>(taken_.size());
  reader->place_ = before_;
  for (auto record = taken_.rbegin(); record != taken_.rend(); ++record) {
    reader->ahead_bytes_ += record->key.size() + record->value.size() + kRecordOverhead;
    reader->ahead_.push_front(std::move(*record));
  }
  taken_.clear();
}

absl::Status Reader::ReadCall::Conclude(KernelContext& ctx) {
  if (!many) {
    ctx.set_output(0, Tensor::Scalar(std::move(taken_[0].key)));
    ctx.set_output(1, Tensor::Scalar(std::move(taken_[0].value)));
    return absl::OkStatus();
  }
  const Shape shape({static_cast<int64_t>(taken_.size())});
  TROUPE_ASSIGN_OR_RETURN(Tensor * keys, ctx.AllocateOutput(0, ElementType::kString, shape));
  TROUPE_ASSIGN_OR_RETURN(Tensor * values, ctx.AllocateOutput(1, ElementType::kString, shape));
  auto* key = keys->mutable_data<std::string>();
  auto* value = values->mutable_data<std::string>();
  for (Record& record : taken_) {
    *key++ = std::move(record.key);
    *value++ = std::move(record.value);
  }
  return absl::OkStatus();
}

void Reader::BeginFile(std::string name) {
  DropFile();
  in_file_ = true;
  name_of_file_ = std::move(name);
  place_ = {};
  ++started_;
}

void Reader::FinishFile() {
  DropFile();
  finished_ = started_;
}

void Reader::DropFile() {
  in_file_ = opened_ = at_end_ = false;
  file_.reset();
  ++file_id_;
  ahead_.clear();
  ahead_bytes_ = 0;
  error_ = absl::OkStatus();
}

absl::Status Reader::AskForName(ReadCall* call) {
  if (busy_ != Busy::kNo) return absl::OkStatus();
  if (call->cancellation != nullptr) TROUPE_RETURN_IF_ERROR(call->cancellation->status());
  auto delivery = std::make_unique<Delivery>(this);
  auto token = std::make_shared<CancellationToken>();
  const uint64_t id = delivery->id = ++last_id_;
  // The token outlives the queue's call, which ends when it is cancelled. `std::function` wants
  // what can be copied.
  auto shared = std::make_shared<std::unique_ptr<Delivery>>(std::move(delivery));
  call->names->Dequeue(token.get(), [token, shared](absl::StatusOr<Tuple> tuple) {
    (*shared)->file_name = CatchExceptions([&]() -> absl::StatusOr<std::string> {
      TROUPE_RETURN_IF_ERROR(tuple.status());
      const Tensor& name = (*tuple)[0];
      if (name.num_elements() == 1) return name.unchecked_data<std::string>()[0];
      return InvalidArgument("the name of a file is one string, got shape ",
                             name.shape().ToString());
    });
    Submit(std::move(*shared));
  });
  // What the queue has given at once is in the mailbox until this call has been served.
  busy_ = Busy::kAskingForName;
  asking_ = call->id_ = id;
  asking_token_ = std::move(token);
  return absl::OkStatus();
}

absl::Status Reader::Fill() {
  if (busy_ != Busy::kNo || at_end_ || !error_.ok()) return absl::OkStatus();
  if (file_ == nullptr && !ahead_.empty()) return absl::OkStatus();
  auto task = std::make_unique<ReadAhead>(this, std::make_unique<Delivery>(this));
  InputThreads()->SubmitLong(task.get());
  (void)task.release();
  busy_ = Busy::kReading;
  return absl::OkStatus();
}

// --- changing ------------------------------------------------------------------------------------

absl::StatusOr<WaitingResource::Call::Progress> Reader::ChangeCall::Serve() {
  auto* const reader = static_cast<Reader*>(resource());
  if (reader->partly_) return Progress::kNone;
  switch (what) {
    case What::kReset:
      reader->DropFile();
      reader->name_of_file_.clear();
      reader->started_ = reader->finished_ = reader->produced_ = 0;
      break;
    case What::kSave:
      state = reader->State();
      break;
    case What::kRestore:
      TROUPE_RETURN_IF_ERROR(reader->TakeState(state));
      break;
  }
  return Progress::kOver;
}

absl::Status Reader::ChangeCall::Conclude(KernelContext& ctx) {
  if (what == What::kSave) ctx.set_output(0, Tensor::Scalar(std::move(state)));
  return absl::OkStatus();
}

std::string Reader::State() const {
  ReaderState state;
  state.set_work_started(started_);
  state.set_work_finished(finished_);
  state.set_num_records_produced(produced_);
  state.set_current_work(name_of_file_);
  for (const std::string& name : next_names_) state.add_next_work(name);
  if (in_file_) {
    state.set_kind(KindName(options_.files.kind));
    state.set_records_in_file(place_.records);
    state.set_offset(place_.offset);
  }
  return state.SerializeAsString();
}

absl::Status Reader::TakeState(const std::string& bytes) {
  const auto wrong = [&](const auto&... what) {
    return InvalidArgument(DebugString(), ": its state cannot be restored: ", what...);
  };
  ReaderState state;
  if (!state.ParseFromString(bytes)) return wrong("the bytes are no serialized state of a reader");
  if (state.work_started() < 0 || state.work_finished() < 0 || state.num_records_produced() < 0 ||
      state.records_in_file() < 0) {
    return wrong("it has a negative number");
  }
  const bool in_file = state.work_started() > state.work_finished();
  if (state.work_started() < state.work_finished() ||
      state.work_started() - state.work_finished() > 1) {
    return wrong(state.work_started(), " files were begun and ", state.work_finished(),
                 " finished");
  }
  const char* const kind = KindName(options_.files.kind);
  if (in_file && state.kind() != kind) {
    return wrong("it is in the midst of a file, of a ",
                 state.kind().empty() ? "reader of another system" : state.kind());
  }
  DropFile();
  in_file_ = in_file;
  name_of_file_ = state.current_work();
  place_ = {.records = state.records_in_file(), .offset = state.offset()};
  started_ = state.work_started();
  finished_ = state.work_finished();
  produced_ = state.num_records_produced();
  next_names_.assign(state.next_work().begin(), state.next_work().end());
  return absl::OkStatus();
}

}  // namespace troupe
