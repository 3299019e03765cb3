/* Counter on a 32-bit timer of the STM32F4, TIM2 or TIM5, of the bus APB1 (RM0090, 18.4). */

#include "counter.h"

#include "stm32f4.h"

#define TIM_CR1 PT_REGISTER(PT_COUNTER_ADDRESS + 0x00)
#define TIM_DIER PT_REGISTER(PT_COUNTER_ADDRESS + 0x0c)
#define TIM_SR PT_REGISTER(PT_COUNTER_ADDRESS + 0x10)
#define TIM_EGR PT_REGISTER(PT_COUNTER_ADDRESS + 0x14)
#define TIM_CNT PT_REGISTER(PT_COUNTER_ADDRESS + 0x24)
#define TIM_PSC PT_REGISTER(PT_COUNTER_ADDRESS + 0x28)
#define TIM_ARR PT_REGISTER(PT_COUNTER_ADDRESS + 0x2c)

#define CR1_CEN (1u << 0)
#define DIER_UIE (1u << 0)
#define SR_UIF (1u << 0)
#define EGR_UG (1u << 0)
#define TIMER_MAX 0xffffffffu

void pt_counter_start(void) {
    pt_stm32f4_enable(&PT_RCC_APB1ENR, PT_COUNTER_ENABLE);
    TIM_CR1 = 0;
    TIM_ARR = TIMER_MAX;
    TIM_PSC = PT_COUNTER_PRESCALER - 1;
    TIM_EGR = EGR_UG;
    TIM_SR = 0;
    TIM_DIER = DIER_UIE;
    TIM_CR1 = CR1_CEN;
}

/* A tick is one instruction, so no begun tick is added. The update flag is set when
 * the timer wraps. */
uint64_t pt_counter_ticks(void) {
    uint32_t value = TIM_CNT;
    uint64_t wrapped = TIM_SR & SR_UIF;
    return (wrapped << 32) + value;
}
