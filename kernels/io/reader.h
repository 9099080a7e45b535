/// Readers: records of files whose names come from a queue.
#ifndef TROUPE_KERNELS_IO_READER_H_
#define TROUPE_KERNELS_IO_READER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/io/file_records.h"
#include "kernels/queues/queue.h"
#include "kernels/queues/waiting_resource.h"

namespace troupe {

class Reader;

/// What a reader is like; fixed for its life.
struct ReaderOptions {
  using Machine = Reader;
  FileRecordsOptions files;
  bool operator==(const ReaderOptions&) const = default;
};

/// Gives out the records of one file after another. Files are opened and read by the threads for
/// input (file_thread.h), some 256 KiB ahead: a call whose record is there already is served at
/// once. While it waits for a file or for the name of one, no thread does.
///
/// Names come from the queue of whoever reads first when one is needed; the name that a call has
/// asked for stays with the reader if the call is given up. A file that cannot be opened is left
/// out after the error. At another error in a file the reader stays before the place: what is
/// before it is given out, then the error, and after it the place is tried again. `Reset` leaves
/// the file. Errors name file and offset. Thread-safe.
class Reader : public WaitingResource {
  enum { kReads, kChanges };

  struct Record {
    std::string key, value;
    RecordPlace after;  ///< Where the next one begins.
  };

 public:
  static constexpr char kKind[] = "reader";

  /// Takes records: one, or as many as the file has left but at most `n`.
  class ReadCall : public Call {
   public:
    explicit ReadCall(Reader* reader) : Call(reader, kReads) {}

    RefPtr<Queue> names;  ///< Of tuples of one string.
    bool many = false;
    int64_t n = 1;

   protected:
    absl::Status Conclude(KernelContext& ctx) override;

   private:
    friend class Reader;
    absl::Status Check(bool* trivial) const override;
    absl::StatusOr<Progress> Serve() override;
    void Withdraw() override;

    std::vector<Record> taken_;  ///< Go back if the call fails.
    RecordPlace before_;         ///< Where the first of them began.
    uint64_t id_ = 0;            ///< Of a call that has asked for a name.
    absl::Status error_;         ///< Of that.
  };

  /// Leaves the file, gives the state out, or takes one over. Waits for a `ReadCall` that has taken
  /// some of its records.
  class ChangeCall : public Call {
   public:
    enum class What : uint8_t { kReset, kSave, kRestore };

    explicit ChangeCall(Reader* reader) : Call(reader, kChanges) {}

    What what = What::kReset;
    std::string state;  ///< For `kRestore`; of `kSave` the result.

   protected:
    absl::Status Conclude(KernelContext& ctx) override;

   private:
    absl::StatusOr<Progress> Serve() override;
  };

  Reader(std::string name, ReaderOptions options);
  ~Reader() override;

  const ReaderOptions& options() const { return options_; }
  std::string DebugString() const override;

  // `token`, which may be nullptr and outlives the call, ends its wait.

  /// A key and a value; scalars. OutOfRange if the queue is closed and empty.
  void Read(RefPtr<Queue> names, CancellationToken* token, Done done);
  /// Up to `n` of each, but at least one; vectors. Never of two files.
  void ReadUpTo(int64_t n, RefPtr<Queue> names, CancellationToken* token, Done done);
  void Reset(Done done);
  /// A scalar string: the message `ReaderState`. What it names can be read on in another process.
  void SaveState(Done done);
  /// InvalidArgument if `state` is none, or is of another kind of reader. The file is opened when
  /// the next record is asked for.
  void RestoreState(std::string state, Done done);

  int64_t RecordsProduced() const { return shown_produced_.load(std::memory_order_acquire); }
  int64_t FilesFinished() const { return shown_finished_.load(std::memory_order_acquire); }

 private:
  class Delivery;
  class ReadAhead;
  enum class Busy : uint8_t { kNo, kAskingForName, kReading };

  void Served() noexcept override;

  // For whoever plays.

  bool reads_one() const {
    return options_.files.kind == FileRecordsOptions::Kind::kIdentity ||
           options_.files.kind == FileRecordsOptions::Kind::kWholeFile;
  }
  void BeginFile(std::string name);
  void FinishFile();
  void DropFile();
  /// True: the call has all it can get.
  bool TakeRecords(ReadCall* call);
  absl::Status AskForName(ReadCall* call);
  absl::Status Fill();
  std::string State() const;
  absl::Status TakeState(const std::string& state);

  const ReaderOptions options_;
  Busy busy_ = Busy::kNo;

  // Names.
  std::deque<std::string> next_names_;  ///< Taken from a queue, not begun.
  uint64_t last_id_ = 0, asking_ = 0;   ///< The call that a name is asked for; 0: it is gone.
  std::shared_ptr<CancellationToken> asking_token_;

  // The file.
  bool in_file_ = false;
  std::string name_of_file_;
  RecordPlace place_;                  ///< Of what has been given out.
  std::shared_ptr<FileRecords> file_;  ///< None: to be opened. Of the one who reads ahead.
  uint64_t file_id_ = 0;               ///< What is read of another one is thrown away.
  bool opened_ = false;
  std::deque<Record> ahead_;
  size_t ahead_bytes_ = 0;
  bool at_end_ = false;  ///< After `ahead_`.
  absl::Status error_;   ///< The same.

  int64_t started_ = 0, finished_ = 0, produced_ = 0;
  bool partly_ = false;  ///< The first call in the line has some of its records.
  std::atomic<int64_t> shown_produced_{0}, shown_finished_{0};
};

}  // namespace troupe

#endif  // TROUPE_KERNELS_IO_READER_H_
