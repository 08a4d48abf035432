// SPDX-License-Identifier: GPL-2.0-or-later
#include "lib/slurm/accounting.h"

#include "lib/slurm/convert.h"
#include "lib/slurm/errors.h"
#include "lib/slurm/handles.h"

#include <cerrno>
#include <memory>
#include <unordered_map>
#include <utility>

namespace flex::slurm {
namespace {

// AccountingStorageEnforce's bits, which slurm.h does not name; the same from 22.05 to 26.05.
constexpr std::uint16_t kEnforceAssociations = 0x0001;
constexpr std::uint16_t kEnforceLimits = 0x0002;
constexpr std::uint16_t kEnforceQos = 0x0008;

using AnswerPtr = std::unique_ptr<assoc_mgr_info_msg_t, FreeWith<&slurm_free_assoc_mgr_info_msg>>;

// A pointer type in old releases, a struct in new ones; this is right for both.
using RawList = decltype(slurm_list_create(nullptr));
using ListPtr = std::unique_ptr<std::remove_pointer_t<RawList>, FreeWith<&slurm_list_destroy>>;
using RawIterator = decltype(slurm_list_iterator_create(nullptr));
using IteratorPtr =
    std::unique_ptr<std::remove_pointer_t<RawIterator>, FreeWith<&slurm_list_iterator_destroy>>;

/// Calls `use` for each item of a list, which may be null.
template <class Item, class Use>
void for_each(RawList list, Use&& use) {
  if (list == nullptr) return;
  const IteratorPtr iterator(slurm_list_iterator_create(list));
  while (const void* item = slurm_list_next(iterator.get())) use(*static_cast<const Item*>(item));
}

std::optional<std::uint32_t> to_number(std::uint32_t value) {
  if (value == INFINITE || value == NO_VAL) return std::nullopt;
  return value;
}

/// `counts` has one for each of the answer's names.
TresCounts to_counts(const assoc_mgr_info_msg_t& answer, const std::uint64_t* counts) {
  TresCounts found;
  if (counts == nullptr || answer.tres_names == nullptr) return found;
  for (std::uint32_t i = 0; i < answer.tres_cnt; ++i) {
    if (counts[i] != INFINITE64 && counts[i] != NO_VAL64 && answer.tres_names[i] != nullptr)
      found.emplace(answer.tres_names[i], counts[i]);
  }
  return found;
}

/// Slurm's "not set" is negative or NO_VAL.
double to_factor(double value) {
  return value < 0 || value >= static_cast<double>(INFINITE) - 2 ? 1 : value;
}

Qos to_qos(const assoc_mgr_info_msg_t& answer, const slurmdb_qos_rec_t& qos) {
  const auto has = [&](std::uint32_t flag) { return (qos.flags & flag) != 0; };
  Qos made{.name = to_text(qos.name),
           .limits = {.group_jobs = to_number(qos.grp_jobs),
                      .user_jobs = to_number(qos.max_jobs_pu),
                      .account_jobs = to_number(qos.max_jobs_pa),
                      .wall = to_limit(qos.max_wall_pj),
                      .group_tres = to_counts(answer, qos.grp_tres_ctld),
                      .job_tres = to_counts(answer, qos.max_tres_pj_ctld),
                      .user_tres = to_counts(answer, qos.max_tres_pu_ctld),
                      .account_tres = to_counts(answer, qos.max_tres_pa_ctld)},
           .overrides_partition = has(QOS_FLAG_OVER_PART_QOS),
           .ignores_partition_time = has(QOS_FLAG_PART_TIME_LIMIT),
           .ignores_partition_max_nodes = has(QOS_FLAG_PART_MAX_NODE),
           .ignores_partition_min_nodes = has(QOS_FLAG_PART_MIN_NODE)};
  if (qos.limit_factor > 0) made.limit_factor = to_factor(qos.limit_factor);
  if (has(QOS_FLAG_USAGE_FACTOR_SAFE)) made.time_factor = to_factor(qos.usage_factor);
  return made;
}

using QosNames = std::unordered_map<std::string, std::string>;

Association to_association(const assoc_mgr_info_msg_t& answer,
                           const QosNames& qos_names,
                           const slurmdb_assoc_rec_t& association) {
  Association made{.id = association.id,
                   .parent_id = association.parent_id,
                   .user = to_text(association.user),
                   .account = to_text(association.acct),
                   .partition = to_text(association.partition),
                   .limits = {.group_jobs = to_number(association.grp_jobs),
                              .user_jobs = to_number(association.max_jobs),
                              .wall = to_limit(association.max_wall_pj),
                              .group_tres = to_counts(answer, association.grp_tres_ctld),
                              .job_tres = to_counts(answer, association.max_tres_ctld)}};
  for_each<char>(association.qos_list, [&](const char& number) {
    const auto known = qos_names.find(&number);
    if (known != qos_names.end()) made.qos.push_back(known->second);
  });
  return made;
}

}  // namespace

Accounting to_accounting(const assoc_mgr_info_msg_t& answer) {
  Accounting made;
  QosNames names;
  for_each<slurmdb_qos_rec_t>(answer.qos_list, [&](const slurmdb_qos_rec_t& qos) {
    names.emplace(std::to_string(qos.id), to_text(qos.name));
    made.qos.push_back(to_qos(answer, qos));
  });
  for_each<slurmdb_assoc_rec_t>(answer.assoc_list, [&](const slurmdb_assoc_rec_t& association) {
    made.associations.push_back(to_association(answer, names, association));
  });
  return made;
}

Enforcement to_enforcement(std::uint16_t flags) {
  return {.associations = (flags & kEnforceAssociations) != 0,
          .limits = (flags & kEnforceLimits) != 0,
          .qos = (flags & kEnforceQos) != 0};
}

Result<Accounting> load_accounting(std::span<const std::string> users) {
  const std::string_view doing = "loading associations and QOS";
  // The message borrows these.
  std::vector<std::string> names(users.begin(), users.end());
  const ListPtr list(slurm_list_create(nullptr));
  for (std::string& name : names) slurm_list_append(list.get(), name.data());
  assoc_mgr_info_request_msg_t request{};
  request.flags = ASSOC_MGR_INFO_FLAG_ASSOC | ASSOC_MGR_INFO_FLAG_QOS;
  request.user_list = names.empty() ? nullptr : list.get();
  assoc_mgr_info_msg_t* raw = nullptr;
  errno = 0;
  const int number = error_number(slurm_load_assoc_mgr_info(&request, &raw));
  const AnswerPtr answer(raw);
  if (number != 0) return to_error(number, doing);
  // Without accounting there is none.
  return answer ? to_accounting(*answer) : Accounting{};
}

}  // namespace flex::slurm
